//! The README's status line: tracked upstream version and number of ported tests.

use anyhow::Context as _;

use super::rows::Row;

/// The reference's version.
pub const UPSTREAM_VERSION: &str = "v1.36.2";

const BEGIN: &str = "<!-- status: written by `make fmt`, checked by hack/tidy -->";

/// Returns the status line. A test in each home proves that every row has a test.
pub fn line(rows: &[Row<'_>]) -> String {
    let (all, not_run) = (
        rows.len(),
        rows.iter().filter(|row| row.not_run.is_some()).count(),
    );
    format!(
        "Tracks Kubernetes {UPSTREAM_VERSION}. Ported upstream rows: {} of {all}; {not_run} need real \
         containers.",
        all - not_run
    )
}

/// Returns the README with a new status line.
///
/// # Errors
/// The README lacks the marker, or the line after it.
pub fn rewrite(readme: &str, line: &str) -> anyhow::Result<String> {
    let (head, tail) = readme
        .split_once(BEGIN)
        .context("find the status marker in README.md")?;
    let old = tail
        .strip_prefix('\n')
        .context("find the line after the status marker")?;
    let (_, rest) = old
        .split_once('\n')
        .context("find the end of the status line")?;
    Ok(format!("{head}{BEGIN}\n{line}\n{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::rows::parse;

    #[test]
    fn line_counts_rows_and_those_that_need_containers() {
        let table = "home A crates/a\nA-01 TestOne\nA-02 TestTwo\n\
                     A-03 TestThree | needs real containers: it does\n";
        assert_eq!(
            line(&parse(table).expect("the table is valid")),
            "Tracks Kubernetes v1.36.2. Ported upstream rows: 2 of 3; 1 need real containers."
        );
    }

    #[test]
    fn rewrite_replaces_the_line_after_the_marker() {
        let readme = format!("# A\n\n{BEGIN}\nold\n\nrest\n");
        assert_eq!(
            rewrite(&readme, "new").expect("the marker exists"),
            format!("# A\n\n{BEGIN}\nnew\n\nrest\n")
        );
        assert!(rewrite("# A\n", "new").is_err());
    }
}
