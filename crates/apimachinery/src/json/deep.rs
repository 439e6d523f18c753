//! JSON that nests deeper than a thread's stack allows.
//!
//! API servers store up to 10,000 levels in fields that they keep verbatim. Parsing, comparing and
//! dropping a [`Value`] recurse, so such a value needs a large stack throughout its life.

use std::pin::Pin;
use std::task::{Context, Poll};

use serde::Deserialize as _;
use serde_json::Value;

/// Deepest nesting that Go's decoder, and so an API server, accepts.
const DEPTH_MAX: usize = 10_000;
/// Deepest nesting that fits an ordinary stack. `serde_json` rejects more than 127 levels by
/// default; wrappers of a value need a few.
const DEPTH_PLAIN: usize = 100;
/// Stack bytes per level in the deepest recursion over a value, unoptimized.
const LEVEL_BYTES: usize = 4 * 1024;
/// Stack bytes for everything else.
const BASE_BYTES: usize = 1024 * 1024;

/// Reason why a JSON text can't be parsed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The text is not JSON, or contains a number beyond the range of doubles.
    #[error("{0}")]
    Syntax(#[from] serde_json::Error),
    /// The text nests deeper than Go's decoder accepts.
    #[error("exceeded max depth of {DEPTH_MAX}")]
    TooDeep,
    /// The text nests too deep for the current stack; see [`on_large_stack`].
    #[error("nested {depth} deep, which needs a larger stack")]
    SmallStack {
        /// Nesting depth of the text.
        depth: usize,
    },
}

/// Parses a JSON value of up to 10,000 levels. More than 100 require [`on_large_stack`], inside
/// which the value must also be dropped.
///
/// # Errors
///
/// The text is not JSON, or nests too deep.
pub fn parse(text: &str) -> Result<Value, ParseError> {
    if !is_deep(text) {
        return Ok(serde_json::from_str(text)?);
    }
    let depth = depth(text);
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

/// Returns true if the value of a JSON text needs [`on_large_stack`].
pub fn is_deep(text: &str) -> bool {
    // Most texts have fewer brackets than that, and counting them is faster than following them.
    let count = |bracket| memchr::memchr_iter(bracket, text.as_bytes()).count();
    count(b'{') + count(b'[') > DEPTH_PLAIN && depth(text) > DEPTH_PLAIN
}

/// Runs a future on a separate stack, large enough for any JSON that [`parse`] accepts. The future
/// is also dropped there.
pub fn on_large_stack<F: Future>(future: F) -> OnLargeStack<F> {
    OnLargeStack(Some(Box::pin(future)))
}

/// Size of the stack of [`on_large_stack`]. Only used pages take memory.
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

/// Nesting depth of the arrays and objects in a JSON text.
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

    /// Polls a future that never waits.
    fn run<T>(future: impl Future<Output = T>) -> Poll<T> {
        Box::pin(future)
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn brackets_in_strings_do_not_nest() {
        assert_eq!(depth(r#"{"[{":["]\"[",{}]}"#), 3);
        assert_eq!(depth("7"), 0);
    }

    #[test]
    fn shallow_json_needs_no_large_stack() {
        assert!(!is_deep(&nested(100)));
        assert!(parse(&nested(100)).is_ok());
        assert!(is_deep(&nested(101)));
    }

    #[test]
    fn deepest_value_parses_prints_compares_and_drops() {
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
    fn parse_reports_a_small_stack() {
        let parsed = std::thread::spawn(|| parse(&nested(10_000)).map(drop));
        let error = parsed.join().unwrap().unwrap_err();
        assert!(matches!(error, ParseError::SmallStack { depth: 10_000 }));
    }

    #[test]
    fn parse_rejects_deeper_nesting_than_go() {
        let parsed = run(on_large_stack(async { parse(&nested(10_001)).map(drop) }));
        assert!(matches!(parsed, Poll::Ready(Err(ParseError::TooDeep))));
    }

    #[test]
    fn cancelled_future_is_dropped_on_a_large_stack() {
        let text = nested(10_000);
        let given_up = run(on_large_stack(async {
            let value = parse(&text).unwrap();
            std::future::pending::<()>().await;
            drop(value);
        }));
        assert!(given_up.is_pending());
    }
}
