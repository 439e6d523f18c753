//! Limits on the length of Rust files.

use crate::{Findings, repository::SourceFile};

/// Maximum lines of a source file without tests. The target is 400.
const FILE_LINES_MAX: usize = 600;

/// Maximum lines of a `lib.rs`, which describes the crate and lists its modules.
const LIB_LINES_MAX: usize = 60;

/// Checks the length of every Rust file.
pub fn check(files: &[SourceFile]) -> Findings {
    files.iter().filter_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Option<String> {
    if is_test_file(&file.path) {
        return None;
    }
    let max = if file.name() == "lib.rs" {
        LIB_LINES_MAX
    } else {
        FILE_LINES_MAX
    };
    let lines = lines_without_tests(&file.text);
    (lines > max).then(|| {
        format!(
            "{}: {lines} lines without its tests; split it, the limit is {max}",
            file.path
        )
    })
}

/// Returns true for a file with only tests: `tests.rs`, `x_tests.rs`, or anything in a `tests`
/// folder.
pub fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
}

/// Lines before the test module at the end of the file.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .windows(2)
        .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with('{'))
        .unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_found_without_counting_tests() {
        let code = "fn f() {}\n";
        let long = SourceFile::new("a/src/x.rs", &code.repeat(601));
        assert_eq!(check(&[long]).len(), 1);
        let tested = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            code.repeat(600),
            code.repeat(90)
        );
        assert_eq!(
            check(&[SourceFile::new("a/src/x.rs", &tested)]),
            Findings::new()
        );
        assert_eq!(
            check(&[SourceFile::new("a/tests/x.rs", &code.repeat(900))]),
            Findings::new()
        );
    }

    #[test]
    fn long_lib_rs_is_found() {
        let file = SourceFile::new("a/src/lib.rs", &"fn f() {}\n".repeat(61));
        assert_eq!(
            check(&[file]),
            ["a/src/lib.rs: 61 lines without its tests; split it, the limit is 60"]
        );
    }
}
