//! Comparison of upstream's tests with the compiled tests of this workspace, row by row.
//!
//! Each home of ported tests has a test that calls [`assert_rows`], which lists the tests of its own
//! program. So tests that macros generate count, and tests that are configured out don't.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::rows::{self, Row};
use crate::{Findings, repository::SourceFile};

/// Name of the test that calls [`assert_rows`].
const OWN_TEST: &str = "every_row_has_a_test";
/// Name of upstream's case in a row's module that also contains cases of this project.
const AS_UPSTREAM: &str = "as_upstream";

/// Compares the rows of a prefix with the tests of the running program.
///
/// # Panics
///
/// A row has no test or more than one, a ported test has no row or is ignored, or a module
/// `upstream` contains another test; also if the program doesn't list its tests.
#[track_caller]
pub fn assert_rows(prefix: &str) {
    let findings = check_program(prefix).expect("the program lists its tests");
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

fn check_program(prefix: &str) -> anyhow::Result<Findings> {
    let program = std::env::current_exe().context("find this program")?;
    let rows = rows::parse(rows::UPSTREAM_TESTS)?;
    let rows: Vec<&Row<'_>> = rows.iter().filter(|row| row.prefix() == prefix).collect();
    let tests = Tests {
        all: list(&program, None)?,
        ignored: list(&program, Some("--ignored"))?,
        is_upstream: program.file_stem().is_some_and(is_upstream),
    };
    Ok(check(&rows, &tests))
}

/// True for the file name of a test program called `upstream`: cargo appends a hash.
fn is_upstream(program: &std::ffi::OsStr) -> bool {
    program.to_string_lossy().starts_with("upstream-")
}

/// Lists the tests of a program, or those that it ignores.
fn list(program: &Path, which: Option<&str>) -> anyhow::Result<Vec<String>> {
    let mut command = Command::new(program);
    command.args(["--list", "--format", "terse"]).args(which);
    let output = command.output().context("list the tests")?;
    ensure!(output.status.success(), "--list fails");
    let listed = String::from_utf8(output.stdout).context("read the list")?;
    let names = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

/// The tests of a program, by their paths: `tests::upstream::list::test_x::selects_all`.
#[derive(Default)]
struct Tests {
    all: Vec<String>,
    /// Those that run only on request.
    ignored: Vec<String>,
    /// True if the whole program holds only ported tests.
    is_upstream: bool,
}

fn check(rows: &[&Row<'_>], tests: &Tests) -> Findings {
    let mut findings = Findings::new();
    let leaves = || rows.iter().filter(|row| !row.has_sub_cases);
    let mut ports: BTreeMap<Vec<&str>, &str> = BTreeMap::new();
    for test in &tests.all {
        let path: Vec<&str> = test.split("::").collect();
        let Some(at) = path.iter().position(|part| is_ported_name(part)) else {
            let is_here = tests.is_upstream || path.contains(&"upstream");
            if is_here && !path.contains(&"fixtures") && path.last() != Some(&OWN_TEST) {
                findings.push(format!("{test} is among ported tests, but has no row"));
            }
            continue;
        };
        let path = path[at..].to_vec();
        match leaves().find(|row| belongs_to(&path, row)) {
            None => findings.push(format!("no row of upstream_tests.txt is called {test}")),
            Some(row) if row.not_run.is_some() => {
                findings.push(format!(
                    "{test} is run, but {} needs real containers",
                    row.id
                ));
            }
            Some(_) if tests.ignored.contains(test) => {
                findings.push(format!("{test} is ignored, but every row is always run"));
            }
            Some(_) => {}
        }
        if let Some(other) = ports.insert(path, test) {
            findings.push(format!("{test} has the name of {other}"));
        }
    }
    for row in leaves().filter(|row| row.not_run.is_none()) {
        if !ports.keys().any(|path| is_port_of(path, row)) {
            findings.push(format!(
                "{} ({}) has no test; write {}",
                row.id,
                row.name,
                row.path.join("::")
            ));
        }
    }
    findings
}

fn is_ported_name(part: &str) -> bool {
    part.starts_with("test_") || part.starts_with("bench_")
}

/// Returns true for the path of the row's port.
fn is_port_of(path: &[&str], row: &Row<'_>) -> bool {
    belongs_to(path, row) && matches!(path[row.path.len()..], [] | [AS_UPSTREAM])
}

/// Returns true for the path of the row's port, and of other cases in the row's module.
fn belongs_to(path: &[&str], row: &Row<'_>) -> bool {
    path.len() >= row.path.len() && row.path.iter().zip(path).all(|(a, b)| a == b)
}

/// Finds homes of rows without a test that compares them.
pub fn check_homes(rows: &[Row<'_>], files: &[SourceFile]) -> Findings {
    let homes: BTreeSet<(&str, &str)> = rows.iter().map(|row| (row.prefix(), row.home)).collect();
    let missing = homes.iter().filter(|(prefix, home)| {
        let call = format!("assert_rows({prefix:?})");
        let calls = |file: &SourceFile| {
            file.path.starts_with(&format!("{home}/")) && file.text.contains(&call)
        };
        !files.iter().any(calls)
    });
    let finding = |(prefix, home): &(&str, &str)| {
        format!("{home}: add a test {OWN_TEST} that calls assert_rows({prefix:?})")
    };
    missing.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::rows::parse;

    const TABLE: &str = "home A crates/a\nA-01 TestOne\nA-02 TestTwo\nA-02.1 first case\nA-02.2 \
                         SecondCase/Burst\nA-03 should exec | needs real containers: it does\n";

    /// A program with every row.
    const WHOLE: [&str; 6] = [
        "other::works",
        "upstream::every_row_has_a_test",
        "upstream::x::test_one",
        "upstream::x::test_two::first_case",
        "upstream::x::test_two::second_case::burst::as_upstream",
        "upstream::x::test_two::second_case::burst::with_more",
    ];

    fn found(names: &[&str], ignored: &[&str], is_upstream: bool) -> Findings {
        let rows = parse(TABLE).expect("the table is valid");
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let tests = Tests {
            all: owned(names),
            ignored: owned(ignored),
            is_upstream,
        };
        check(&rows.iter().collect::<Vec<_>>(), &tests)
    }

    /// The findings for a whole program with another name instead of the test at `at`.
    fn renamed(at: usize, name: &str) -> Findings {
        let mut names = WHOLE;
        names[at] = name;
        found(&names, &[], false)
    }

    #[test]
    fn complete_ports_pass() {
        assert_eq!(found(&WHOLE, &[], false), Findings::new());
    }

    #[test]
    fn renamed_sub_case_is_missing_and_has_no_row() {
        assert_eq!(
            renamed(3, "upstream::x::test_two::another_case"),
            [
                "no row of upstream_tests.txt is called upstream::x::test_two::another_case",
                "A-02.1 (first case) has no test; write test_two::first_case",
            ]
        );
    }

    #[test]
    fn additional_cases_do_not_replace_a_port() {
        assert_eq!(
            renamed(4, "upstream::x::test_two::second_case::burst::with_less"),
            ["A-02.2 (SecondCase/Burst) has no test; write test_two::second_case::burst"]
        );
    }

    #[test]
    fn ignored_ports_are_found() {
        assert_eq!(
            found(&WHOLE, &["upstream::x::test_one"], false),
            ["upstream::x::test_one is ignored, but every row is always run"]
        );
    }

    #[test]
    fn tests_without_rows_are_found() {
        assert_eq!(
            renamed(0, "upstream::y::works"),
            ["upstream::y::works is among ported tests, but has no row"]
        );
        assert_eq!(renamed(0, "upstream::fixtures::works"), Findings::new());
        let others = found(&WHOLE, &[], true);
        assert_eq!(
            others,
            ["other::works is among ported tests, but has no row"]
        );
        assert_eq!(
            renamed(0, "test_should_exec"),
            ["test_should_exec is run, but A-03 needs real containers"]
        );
    }

    #[test]
    fn duplicate_names_are_found() {
        assert_eq!(
            renamed(0, "y::test_one"),
            ["upstream::x::test_one has the name of y::test_one"]
        );
    }

    #[test]
    fn homes_without_the_comparison_are_found() {
        let rows = parse(TABLE).expect("the table is valid");
        let file = |text: &str| SourceFile::new("crates/a/src/tests/upstream.rs", text);
        let call = "fn every_row_has_a_test() { assert_rows(\"A\"); }";
        assert_eq!(check_homes(&rows, &[file(call)]), Findings::new());
        assert_eq!(
            check_homes(&rows, &[file("")]),
            ["crates/a: add a test every_row_has_a_test that calls assert_rows(\"A\")"]
        );
    }
}
