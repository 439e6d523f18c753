//! Code lines of the crates that port upstream's decisions.

use crate::repository::SourceFile;

/// The crates that hold what upstream's `history` and `statefulset` packages hold, without the
/// controller.
pub const CRATES: [&str; 3] = ["history", "pod-control", "set-control"];

/// Counts the code lines of a crate: without comments, blank lines, tests and test doubles.
pub fn count(name: &str, files: &[SourceFile]) -> usize {
    let prefix = format!("crates/{name}/src/");
    let files = files.iter().filter(|file| file.path.starts_with(&prefix));
    let production = files.filter(|file| !is_for_tests(&file.path));
    production.map(|file| lines(&file.text)).sum()
}

/// Returns true for tests, test doubles and fixtures.
pub fn is_for_tests(path: &str) -> bool {
    let parts = ["/tests", "/upstream", "/testing", "/fake", "/test_setup"];
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
            file("crates/history/src/upstream/a.rs"),
            file("crates/history/src/a/tests.rs"),
            file("crates/history/tests/a.rs"),
            file("crates/client/src/a.rs"),
        ];
        assert_eq!(count("history", &files), 8);
    }
}
