//! One-line format of an error with its causes.

/// Joins an error and its causes with `: `. Skips a cause whose text the wrapper already contains,
/// and turns line breaks into spaces.
pub(crate) fn error_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause
            .to_string()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
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
    use anyhow::{Context as _, anyhow};

    use super::error_line;

    #[test]
    fn causes_follow_their_wrapper_on_one_line() {
        let error = Err::<(), _>(anyhow!("it\n  broke"))
            .context("open the door")
            .unwrap_err();
        assert_eq!(error_line(&error), "open the door: it broke");
    }

    #[test]
    fn repeated_causes_are_printed_once() {
        let error = Err::<(), _>(anyhow!("no key")).context("open the door: no key; find it");
        assert_eq!(
            error_line(&error.unwrap_err()),
            "open the door: no key; find it"
        );
    }
}
