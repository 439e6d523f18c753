//! Comparison of upstream's tests with this workspace's, row by row.

use std::collections::BTreeMap;

use crate::{
    Findings,
    repository::SourceFile,
    test_functions::{TestFunction, test_functions},
    upstream_rows::Row,
};

/// Number of rows by outcome.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally<'a> {
    /// All rows.
    pub rows: usize,
    /// Rows with a test.
    pub ported: usize,
    /// Rows that need real containers.
    pub not_run: usize,
    /// Rows without a test, by home.
    pub missing: BTreeMap<&'a str, usize>,
}

/// Ported tests of one home, by their path from the `test_…` or `bench_…` name on.
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

/// Name of upstream's case in a row's module that also contains cases of this project.
const AS_UPSTREAM: &str = "as_upstream";

/// Returns true for the path of the row's port.
fn is_port_of(path: &[String], row: &Row<'_>) -> bool {
    path.strip_prefix(&*row.path)
        .is_some_and(|rest| rest.is_empty() || rest == [AS_UPSTREAM])
}

/// Returns true for the path of the row's port, and of other cases in the row's module.
fn belongs_to(path: &[String], row: &Row<'_>) -> bool {
    path.starts_with(&row.path)
}

/// Counts the rows of the table and their tests.
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

/// Returns true if all sub-cases of a test are ported.
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

/// Finds rows without a test, tests without a row, conditional tests, and duplicate names in one
/// home.
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
                    "{}: {name} is run, but {} needs real containers",
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
                        findings.push(format!("{}: {name} is in {other} as well", test.file));
                    }
                }
            }
        }
        findings.extend(strangers(home, files));
    }
    findings
}

/// Finds tests in a module `upstream` without a ported name.
fn strangers(home: &str, files: &[SourceFile]) -> Findings {
    let has = |test: &TestFunction, name: &str| test.path.iter().any(|part| part == name);
    tests_below(home, files)
        .filter(|test| has(test, "upstream") && !has(test, "fixtures"))
        .filter(|test| !test.path.iter().any(|part| is_ported_name(part)))
        .map(|test| {
            format!(
                "{}: {} is in `upstream` but not a row of upstream_tests.txt",
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
    fn complete_ports_pass_and_are_counted() {
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
    fn renamed_sub_cases_are_missing_and_have_no_row() {
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
    fn additional_cases_do_not_replace_a_port() {
        let mut files = whole();
        files[0].text = files[0].text.replace("as_upstream", "with_less");
        assert_eq!(
            found(&files),
            ["crates/a: A-02.2 (second case) has no test; write test_two::second_case"]
        );
    }

    #[test]
    fn conditional_ports_are_found() {
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
    fn tests_without_rows_and_tests_needing_containers_are_found() {
        let mut files = whole();
        files.push(SourceFile::new(
            "test/b/src/upstream.rs",
            "#[test]\nfn something_else() {}\n\n#[test]\nfn test_should_exec() {}\n",
        ));
        assert_eq!(
            found(&files),
            [
                "test/b/src/upstream.rs: test_should_exec is run, but B-02 needs real \
                 containers",
                "test/b/src/upstream.rs: upstream::something_else is in `upstream` but \
                 not a row of upstream_tests.txt",
            ]
        );
    }

    #[test]
    fn duplicate_names_are_found_and_fixture_tests_pass() {
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
            ["crates/a/src/y.rs: test_one is in crates/a/src/upstream/x.rs as well"]
        );
    }
}
