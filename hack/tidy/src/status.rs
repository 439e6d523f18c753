//! The README's status line: tracked upstream version and number of ported tests.

use anyhow::Context as _;

use crate::{parity, repository::SourceFile, upstream_rows};

/// The reference's version.
pub const UPSTREAM_VERSION: &str = "v1.36.2";

const BEGIN: &str = "<!-- status: written by `make fmt`, checked by hack/tidy -->";

/// Returns the status line for the Rust files of the repository.
///
/// # Errors
/// The table is malformed.
pub fn line(table: &str, files: &[SourceFile]) -> anyhow::Result<String> {
    let rows = upstream_rows::parse(table)?;
    let tally = parity::tally(&rows, files);
    let rest = if tally.missing.is_empty() {
        String::new()
    } else {
        let homes: Vec<String> = tally
            .missing
            .iter()
            .map(|(home, missing)| format!("{missing} of `{home}`"))
            .collect();
        format!(" Still to port: {}.", homes.join(", "))
    };
    Ok(format!(
        "Tracks Kubernetes {UPSTREAM_VERSION}. Ported upstream rows: {} of {}; {} need real \
         containers.{rest}",
        tally.ported, tally.rows, tally.not_run
    ))
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

    #[test]
    fn line_counts_ported_rows_and_missing_ones_by_home() {
        let table = "home A crates/a\nhome B crates/b\nA-01 TestOne\nB-01 TestTwo\n\
                     B-02 TestThree | needs real containers: it does\n";
        let files = [SourceFile::new(
            "crates/a/src/x.rs",
            "#[test]\nfn test_one() {}\n",
        )];
        assert_eq!(
            line(table, &files).expect("the table is valid"),
            "Tracks Kubernetes v1.36.2. Ported upstream rows: 1 of 3; 1 need real containers. \
             Still to port: 1 of `crates/b`."
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
