//! The README's status line: tracked upstream version and number of ported tests.

use super::rows::Row;

/// Upstream's version.
pub const UPSTREAM_VERSION: &str = "v1.36.2";

/// Line before the status line.
pub const MARKER: &str = "<!-- status: written by `make fmt`, checked by hack/tidy -->";

/// Returns the status line. A test in each home proves that every row has a test.
pub fn line(rows: &[Row<'_>]) -> String {
    let (all, not_run) = (
        rows.len(),
        rows.iter().filter(|row| row.not_run.is_some()).count(),
    );
    format!(
        "Tracks Kubernetes {UPSTREAM_VERSION}. Runs {} of upstream's {all} test cases; {not_run} need real \
         containers.",
        all - not_run
    )
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
            "Tracks Kubernetes v1.36.2. Runs 2 of upstream's 3 test cases; 1 need real containers."
        );
    }
}
