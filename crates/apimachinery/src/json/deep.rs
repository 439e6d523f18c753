//! JSON that nests deeper than the stack of a thread allows.
//!
//! API servers store up to 10,000 levels where they keep JSON as it was sent. Reading, comparing and
//! dropping a [`Value`] recurse, so that such a value needs a large stack for as long as it lives.

use std::pin::Pin;
use std::task::{Context, Poll};

use serde::Deserialize as _;
use serde_json::Value;

/// The deepest nesting that Go's decoder, and so an API server, accepts.
const DEPTH_MAX: usize = 10_000;
/// The deepest nesting that needs no large stack. `serde_json` refuses more than 127 levels by
/// default; what wraps a value needs a few.
const DEPTH_PLAIN: usize = 100;
/// Stack that one level may take in the deepest recursion over a value, unoptimized.
const LEVEL_BYTES: usize = 4 * 1024;
/// Stack for everything else.
const BASE_BYTES: usize = 1024 * 1024;

/// Why a JSON text has no value.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The text is no JSON, or holds a number that no double holds.
    #[error("{0}")]
    Syntax(#[from] serde_json::Error),
    /// The text nests deeper than Go's decoder accepts.
    #[error("exceeded max depth of {DEPTH_MAX}")]
    TooDeep,
    /// The text nests deeper than the stack at hand allows; see [`on_large_stack`].
    #[error("nested {depth} deep, which needs a larger stack")]
    SmallStack {
        /// Levels of the text.
        depth: usize,
    },
}

/// Reads a JSON value of up to 10,000 levels. More than 100 need [`on_large_stack`], in which the
/// value must also be dropped.
///
/// # Errors
///
/// The text is no JSON, or nests too deep.
pub fn parse(text: &str) -> Result<Value, ParseError> {
    let depth = depth(text);
    if depth <= DEPTH_PLAIN {
        return Ok(serde_json::from_str(text)?);
    }
    if depth > DEPTH_MAX {
        return Err(ParseError::TooDeep);
    }
    let needed = BASE_BYTES + depth * LEVEL_BYTES;
    if stacker::remaining_stack().is_none_or(|remaining| remaining < needed) {
        return Err(ParseError::SmallStack { depth });
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    let value = Value::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Whether a JSON text nests so deep that its value needs [`on_large_stack`].
pub fn is_deep(text: &str) -> bool {
    depth(text) > DEPTH_PLAIN
}

/// Runs a future with stack for JSON of any depth that [`parse`] reads: it is polled, and dropped, on
/// a stack of its own.
pub fn on_large_stack<F: Future>(future: F) -> OnLargeStack<F> {
    OnLargeStack(Some(Box::pin(future)))
}

/// The stack that [`on_large_stack`] gives. Only what is used of it takes memory.
const LARGE_STACK_BYTES: usize = 2 * BASE_BYTES + (DEPTH_MAX + 1) * LEVEL_BYTES;

/// A future that is polled and dropped on a large stack.
pub struct OnLargeStack<F>(Option<Pin<Box<F>>>);

impl<F: Future> Future for OnLargeStack<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = self.0.as_mut() else {
            return Poll::Pending;
        };
        let polled = stacker::grow(LARGE_STACK_BYTES, || future.as_mut().poll(context));
        if polled.is_ready() {
            self.drop_future();
        }
        polled
    }
}

impl<F> OnLargeStack<F> {
    fn drop_future(&mut self) {
        if let Some(future) = self.0.take() {
            stacker::grow(LARGE_STACK_BYTES, || drop(future));
        }
    }
}

impl<F> Drop for OnLargeStack<F> {
    fn drop(&mut self) {
        self.drop_future();
    }
}

/// How deep arrays and objects nest in a JSON text.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    deepest
}

fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::json::to_go_string;

    fn nested(levels: usize) -> String {
        format!(
            r#"{}{{"a":"[[[\"]"}}{}"#,
            r#"{"x":"#.repeat(levels - 1),
            "}".repeat(levels - 1)
        )
    }

    /// Polls a future that waits for nothing.
    fn run<T>(future: impl Future<Output = T>) -> Poll<T> {
        Box::pin(future)
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn brackets_in_strings_dont_nest() {
        assert_eq!(depth(r#"{"[{":["]\"[",{}]}"#), 3);
        assert_eq!(depth("7"), 0);
    }

    #[test]
    fn plain_depth_needs_no_large_stack() {
        assert!(!is_deep(&nested(100)));
        assert!(parse(&nested(100)).is_ok());
        assert!(is_deep(&nested(101)));
    }

    #[test]
    fn the_deepest_value_is_read_written_compared_and_dropped() {
        let text = nested(10_000);
        let rewritten = run(on_large_stack(async {
            let value = parse(&text).unwrap();
            let copy = value.clone();
            assert!(value == copy);
            to_go_string(&copy)
        }));
        assert!(rewritten == Poll::Ready(text.clone()));
    }

    #[test]
    fn a_small_stack_is_an_error() {
        let parsed = std::thread::spawn(|| parse(&nested(10_000)).map(drop));
        let error = parsed.join().unwrap().unwrap_err();
        assert!(matches!(error, ParseError::SmallStack { depth: 10_000 }));
    }

    #[test]
    fn more_than_go_accepts_is_an_error() {
        let parsed = run(on_large_stack(async { parse(&nested(10_001)).map(drop) }));
        assert!(matches!(parsed, Poll::Ready(Err(ParseError::TooDeep))));
    }

    #[test]
    fn a_future_given_up_is_dropped_on_a_large_stack() {
        let text = nested(10_000);
        let given_up = run(on_large_stack(async {
            let value = parse(&text).unwrap();
            std::future::pending::<()>().await;
            drop(value);
        }));
        assert!(given_up.is_pending());
    }
}
