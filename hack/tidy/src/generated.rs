//! Generated lines of pages, each below a marker.

use anyhow::Context as _;

/// Returns a page with a new line after the marker.
///
/// # Errors
/// The page lacks the marker, or the line after it.
pub fn rewrite(page: &str, marker: &str, line: &str) -> anyhow::Result<String> {
    let (head, tail) = page
        .split_once(marker)
        .with_context(|| format!("find {marker}"))?;
    let old = tail
        .strip_prefix('\n')
        .with_context(|| format!("find the line after {marker}"))?;
    let (_, rest) = old
        .split_once('\n')
        .with_context(|| format!("find the end of the line after {marker}"))?;
    Ok(format!("{head}{marker}\n{line}\n{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_after_the_marker_is_replaced() {
        assert_eq!(
            rewrite("# A\n\n<!-- m -->\nold\n\nrest\n", "<!-- m -->", "new")
                .expect("the marker exists"),
            "# A\n\n<!-- m -->\nnew\n\nrest\n"
        );
        assert!(rewrite("# A\n", "<!-- m -->", "new").is_err());
    }
}
