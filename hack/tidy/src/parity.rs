//! Upstream's tests and this workspace's, row by row, in both directions.

use std::collections::BTreeMap;

use crate::{
    Findings,
    repository::SourceFile,
    test_functions::{TestFunction, test_functions},
    upstream_rows::Row,
};

/// How many rows there are, and what became of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally<'a> {
    /// Rows in all.
    pub rows: usize,
    /// Those with a test.
    pub ported: usize,
    /// Those that need real containers.
    pub not_run: usize,
    /// Those that have no test yet, by home.
    pub missing: BTreeMap<&'a str, usize>,
}

/// The tests of one home that are ports, by their path from the `test_…` or `bench_…` name on.
fn ports(home: &str, files: &[SourceFile]) -> Vec<(Vec<String>, TestFunction)> {
    tests_below(home, files)
        .filter_map(|test| {
            let at = test.path.iter().position(|part| is_ported_name(part))?;
            Some((test.path[at..].to_vec(), test))
        })
        .collect()
}

fn tests_below(home: &str, files: &[SourceFile]) -> impl Iterator<Item = TestFunction> {
    let folder = format!("{home}/");
    files
        .iter()
        .filter(move |file| file.path.starts_with(&folder))
        .flat_map(test_functions)
}

fn is_ported_name(part: &str) -> bool {
    part.starts_with("test_") || part.starts_with("bench_")
}

/// What upstream's case is called where a row is a module that holds cases of this project's own
/// beside it.
const AS_UPSTREAM: &str = "as_upstream";

/// Whether the test at `path` is the row's port.
fn is_port_of(path: &[String], row: &Row<'_>) -> bool {
    path.strip_prefix(&*row.path)
        .is_some_and(|rest| rest.is_empty() || rest == [AS_UPSTREAM])
}

/// Whether the test at `path` is the row's port, or stands beside it in the row's module.
fn belongs_to(path: &[String], row: &Row<'_>) -> bool {
    path.starts_with(&row.path)
}

/// Counts the rows of the table and the tests there are for them.
pub fn tally<'a>(rows: &[Row<'a>], files: &[SourceFile]) -> Tally<'a> {
    let mut tally = Tally {
        rows: rows.len(),
        ..Tally::default()
    };
    let mut homes = BTreeMap::new();
    for row in rows {
        let ports = homes
            .entry(row.home)
            .or_insert_with(|| ports(row.home, files));
        if row.not_run.is_some() {
            tally.not_run += 1;
        } else if is_ported(row, rows, ports) {
            tally.ported += 1;
        } else {
            *tally.missing.entry(row.home).or_default() += 1;
        }
    }
    tally
}

/// A test with sub-cases is ported when all of them are.
fn is_ported(row: &Row<'_>, rows: &[Row<'_>], ports: &[(Vec<String>, TestFunction)]) -> bool {
    if row.has_sub_cases {
        let sub_cases = format!("{}.", row.id);
        return rows
            .iter()
            .filter(|other| other.id.starts_with(&sub_cases))
            .all(|sub_case| is_ported(sub_case, rows, ports));
    }
    ports.iter().any(|(path, _)| is_port_of(path, row))
}

/// Rows without a test, tests without a row, tests that aren't always run, and tests that carry the
/// same name in one home.
pub fn check(rows: &[Row<'_>], files: &[SourceFile]) -> Findings {
    let mut findings = Findings::new();
    let mut homes: Vec<&str> = rows.iter().map(|row| row.home).collect();
    homes.dedup();
    for home in homes {
        let rows: Vec<&Row<'_>> = rows.iter().filter(|row| row.home == home).collect();
        let leaves: Vec<&Row<'_>> = rows
            .iter()
            .copied()
            .filter(|row| !row.has_sub_cases)
            .collect();
        let ports = ports(home, files);
        for row in leaves.iter().filter(|row| row.not_run.is_none()) {
            if !ports.iter().any(|(path, _)| is_port_of(path, row)) {
                findings.push(format!(
                    "{home}: {} ({}) has no test; write {}",
                    row.id,
                    row.name,
                    row.path.join("::")
                ));
            }
        }
        let mut seen: BTreeMap<&[String], &str> = BTreeMap::new();
        for (path, test) in &ports {
            let name = path.join("::");
            match leaves.iter().find(|row| belongs_to(path, row)) {
                None => findings.push(format!(
                    "{}: no row of upstream_tests.txt is called {name}",
                    test.file
                )),
                Some(row) if row.not_run.is_some() => findings.push(format!(
                    "{}: {name} is run, but {} says it needs real containers",
                    test.file, row.id
                )),
                Some(_) => {
                    if let Some(attribute) = &test.hindrance {
                        findings.push(format!(
                            "{}: {name} has {attribute}, but every row is always run",
                            test.file
                        ));
                    }
                    if let Some(other) = seen.insert(path, &test.file) {
                        findings.push(format!("{}: {name} stands in {other} as well", test.file));
                    }
                }
            }
        }
        findings.extend(strangers(home, files));
    }
    findings
}

/// Tests that stand under a module `upstream` and carry no ported name.
fn strangers(home: &str, files: &[SourceFile]) -> Findings {
    let has = |test: &TestFunction, name: &str| test.path.iter().any(|part| part == name);
    tests_below(home, files)
        .filter(|test| has(test, "upstream") && !has(test, "fixtures"))
        .filter(|test| !test.path.iter().any(|part| is_ported_name(part)))
        .map(|test| {
            format!(
                "{}: {} stands under `upstream` and is no row of upstream_tests.txt",
                test.file,
                test.path.join("::")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream_rows::parse;

    const TABLE: &str = "home A crates/a\nhome B test/b\nA-01 TestOne\nA-02 TestTwo\nA-02.1 first \
                         case\nA-02.2 second case\nB-01 should run\nB-02 should exec | needs real \
                         containers: it does\n";

    /// A home with every row.
    fn whole() -> Vec<SourceFile> {
        let a = "#[test]\nfn test_one() {}\n\nmod test_two {\n    #[test]\n    fn first_case() \
                 {}\n\n    mod second_case {\n        #[test]\n        fn as_upstream() {}\n\n        \
                 #[test]\n        fn with_more() {}\n    }\n}\n";
        vec![
            SourceFile::new("crates/a/src/upstream/x.rs", a),
            SourceFile::new("test/b/tests/b.rs", "#[test]\nfn test_should_run() {}\n"),
        ]
    }

    fn found(files: &[SourceFile]) -> Findings {
        check(&parse(TABLE).expect("well formed"), files)
    }

    #[test]
    fn a_whole_port_passes_and_is_counted() {
        assert_eq!(found(&whole()), Findings::new());
        let rows = parse(TABLE).expect("well formed");
        let expected = Tally {
            rows: 6,
            ported: 5,
            not_run: 1,
            missing: BTreeMap::new(),
        };
        assert_eq!(tally(&rows, &whole()), expected);
    }

    #[test]
    fn a_renamed_sub_case_is_missing_and_has_no_row() {
        let mut files = whole();
        files[0].text = files[0].text.replace("first_case", "another_case");
        assert_eq!(
            found(&files),
            [
                "crates/a: A-02.1 (first case) has no test; write test_two::first_case",
                "crates/a/src/upstream/x.rs: no row of upstream_tests.txt is called \
                 test_two::another_case",
            ]
        );
        let rows = parse(TABLE).expect("well formed");
        let tally = tally(&rows, &files);
        assert_eq!((tally.ported, tally.missing["crates/a"]), (3, 2));
    }

    #[test]
    fn what_stands_beside_a_port_doesnt_take_its_place() {
        let mut files = whole();
        files[0].text = files[0].text.replace("as_upstream", "with_less");
        assert_eq!(
            found(&files),
            ["crates/a: A-02.2 (second case) has no test; write test_two::second_case"]
        );
    }

    #[test]
    fn a_port_that_isnt_always_run_is_found() {
        let mut files = whole();
        files[1].text = files[1]
            .text
            .replace("#[test]\n", "#[test]\n#[cfg(unix)]\n");
        assert_eq!(
            found(&files),
            ["test/b/tests/b.rs: test_should_run has #[cfg(unix)], but every row is always run"]
        );
    }

    #[test]
    fn a_test_under_upstream_without_a_row_and_one_that_cannot_be_run_are_found() {
        let mut files = whole();
        files.push(SourceFile::new(
            "test/b/src/upstream.rs",
            "#[test]\nfn something_else() {}\n\n#[test]\nfn test_should_exec() {}\n",
        ));
        assert_eq!(
            found(&files),
            [
                "test/b/src/upstream.rs: test_should_exec is run, but B-02 says it needs real \
                 containers",
                "test/b/src/upstream.rs: upstream::something_else stands under `upstream` and is \
                 no row of upstream_tests.txt",
            ]
        );
    }

    #[test]
    fn one_name_in_two_files_is_found_and_a_test_of_fixtures_is_let_be() {
        let mut files = whole();
        files.push(SourceFile::new(
            "crates/a/src/upstream/fixtures.rs",
            "#[test]\nfn builders_build() {}\n",
        ));
        files.push(SourceFile::new(
            "crates/a/src/y.rs",
            "#[test]\nfn test_one() {}\n",
        ));
        assert_eq!(
            found(&files),
            ["crates/a/src/y.rs: test_one stands in crates/a/src/upstream/x.rs as well"]
        );
    }
}
