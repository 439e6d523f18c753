//! Code lines of the crates that port upstream's decisions.

use crate::{Findings, repository::SourceFile};

/// Crates that port upstream's `history` and `statefulset` packages, except the controller.
pub const CRATES: [&str; 3] = ["history", "pod-control", "set-control"];

/// Page with the figure.
pub const PAGE: &str = "docs/architecture.md";
/// Line before the figure.
pub const MARKER: &str = "<!-- code lines: written by `make fmt`, checked by hack/tidy -->";
/// Code lines of upstream's two packages without their controller and its metrics.
const UPSTREAM: usize = 1_967;
/// Code lines that the crates may have together: a rise needs a reason. The last ones were where a sync
/// asks the crate of the opt-ins, the sizes of claims and the resizes of pods that it writes for it.
const LINES_MAX: usize = 3_120;

/// Returns the line of the page that states the figures.
pub fn line(files: &[SourceFile]) -> String {
    let counts = CRATES.map(|name| count(name, files));
    let total: usize = counts.iter().sum();
    let [tenths, rest] = [total * 10 / UPSTREAM, total * 100 / UPSTREAM % 10];
    let tenths = tenths + usize::from(rest >= 5);
    format!(
        "They have {total} lines of code (history {}, pod-control {}, set-control {}), {}.{} times \
         upstream's {UPSTREAM}.",
        counts[0],
        counts[1],
        counts[2],
        tenths / 10,
        tenths % 10
    )
}

/// Finds crates that outgrew their limit.
pub fn check(files: &[SourceFile]) -> Findings {
    let total: usize = CRATES.iter().map(|name| count(name, files)).sum();
    if total <= LINES_MAX {
        return Findings::new();
    }
    vec![format!(
        "{} have {total} code lines, more than {LINES_MAX}; simplify them",
        CRATES.join(", ")
    )]
}

/// Counts the code lines of a crate: without comments, blank lines, tests and test doubles.
pub fn count(name: &str, files: &[SourceFile]) -> usize {
    let prefix = format!("crates/{name}/src/");
    let files = files.iter().filter(|file| file.path.starts_with(&prefix));
    let production = files.filter(|file| !is_for_tests(&file.path));
    production.map(|file| lines(&file.text)).sum()
}

/// Returns true for tests, test doubles and fixtures.
pub fn is_for_tests(path: &str) -> bool {
    let parts = ["/tests", "/testing", "/fake"];
    parts.iter().any(|part| path.contains(part))
}

/// Code lines of a text formatted by rustfmt.
fn lines(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if is_test_attribute(code) {
            skip_item(&mut lines, line.len() - code.len());
        } else if !code.is_empty() && !code.starts_with("//") {
            count += 1;
        }
    }
    count
}

fn is_test_attribute(code: &str) -> bool {
    code.starts_with("#[cfg(test)]") || code.starts_with("#[cfg(any(test")
}

/// Skips the item after an attribute at this indentation.
fn skip_item<'a>(lines: &mut impl Iterator<Item = &'a str>, indent: usize) {
    for line in lines {
        let code = line.trim_start();
        let at_level = line.len() - code.len() == indent && !code.starts_with("#[");
        if at_level && (code.ends_with(';') || code.ends_with('}')) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
//! A file.

mod a;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = \"testing\"))]
pub use a::{
    Fake,
    Mock,
};

/// Adds.
fn add() {
    // Twice.
    two();
}

#[cfg(test)]
mod inner {
    fn test() {
        two();
    }
}
";

    #[test]
    fn comments_blank_lines_and_tests_are_not_counted() {
        assert_eq!(lines(TEXT), 4);
        let file = |path: &str| SourceFile::new(path, TEXT);
        let files = [
            file("crates/history/src/a.rs"),
            file("crates/history/src/b/c.rs"),
            file("crates/history/src/fake.rs"),
            file("crates/history/src/tests/upstream/a.rs"),
            file("crates/history/src/a/tests.rs"),
            file("crates/history/tests/a.rs"),
            file("crates/client/src/a.rs"),
        ];
        assert_eq!(count("history", &files), 8);
    }

    #[test]
    fn page_states_the_sum_and_its_ratio() {
        let lines = |count: usize| "a();\n".repeat(count);
        let files = [
            SourceFile::new("crates/history/src/a.rs", &lines(1_000)),
            SourceFile::new("crates/pod-control/src/a.rs", &lines(1_881)),
            SourceFile::new("crates/set-control/src/a.rs", &lines(LINES_MAX - 2_881)),
        ];
        assert_eq!(
            line(&files),
            "They have 3120 lines of code (history 1000, pod-control 1881, set-control 239), 1.6 \
             times upstream's 1967."
        );
        assert_eq!(check(&files), Findings::new());
        let more = SourceFile::new("crates/set-control/src/b.rs", "b();\n");
        let found = check(&[&files[..], &[more]].concat());
        assert_eq!(
            found,
            [
                "history, pod-control, set-control have 3121 code lines, more than 3120; simplify them"
            ]
        );
    }
}
