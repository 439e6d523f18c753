//! One-line text of an error with its causes.

use std::error::Error;

/// Joins an error and its causes with `: `. Skips a cause whose text the wrapper already contains,
/// and turns line breaks into spaces.
pub fn error_line(error: &(dyn Error + 'static)) -> String {
    let mut line = String::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        next = cause.source();
        let text = cause.to_string();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.contains(&text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&text);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::error_line;

    /// An error with a text and a cause.
    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Wrapper {
        text: &'static str,
        source: std::fmt::Error,
    }

    fn line(text: &'static str) -> String {
        let source = std::fmt::Error;
        error_line(&Wrapper { text, source })
    }

    #[test]
    fn causes_follow_their_wrapper_on_one_line() {
        let cause = std::fmt::Error.to_string();
        assert_eq!(line("open\n  the door"), format!("open the door: {cause}"));
    }

    #[test]
    fn repeated_causes_are_printed_once() {
        let text: &str = "open the door: an error occurred when formatting an argument; find it";
        assert_eq!(line(text), text);
    }
}
