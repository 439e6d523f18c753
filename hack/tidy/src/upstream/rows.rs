//! The table of upstream's tests and sub-cases, `upstream_tests.txt`, with the names of their
//! ports.

use std::collections::BTreeMap;

use anyhow::Context as _;

/// The table; its header describes the format.
pub const UPSTREAM_TESTS: &str = include_str!("../../upstream_tests.txt");

/// Separator before the reason for not running a row.
const NOT_RUN: &str = " | needs real containers: ";
/// Suffix of a case that a conformant cluster has to pass.
const CONFORMANCE: &str = " | conformance";

/// One upstream test or sub-case.
#[derive(Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Id, `SET-01.3`.
    pub id: &'a str,
    /// Folder of the package with the port.
    pub home: &'a str,
    /// Upstream's name.
    pub name: &'a str,
    /// Path of its port: the test, and for a sub-case the function in the test's module.
    pub path: Vec<String>,
    /// True for a row with sub-cases, which is a module.
    pub has_sub_cases: bool,
    /// Reason for not running a row that needs real containers.
    pub not_run: Option<&'a str>,
    /// True for a conformance test.
    pub is_conformance: bool,
}

impl Row<'_> {
    /// First part of the id, the same for all rows of a home.
    pub fn prefix(&self) -> &str {
        self.id.split('-').next().unwrap_or_default()
    }
}

/// Parses the table.
///
/// # Errors
/// A line is neither a row nor a home, a row lacks its home, or a sub-case lacks its test.
pub fn parse(table: &str) -> anyhow::Result<Vec<Row<'_>>> {
    let mut homes: BTreeMap<&str, &str> = BTreeMap::new();
    let mut rows: Vec<Row<'_>> = Vec::new();
    for line in table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (id, rest) = line
            .split_once(' ')
            .with_context(|| format!("upstream_tests.txt: {line}: expected ID NAME"))?;
        if id == "home" {
            let (prefix, folder) = rest
                .split_once(' ')
                .with_context(|| format!("upstream_tests.txt: {line}: expected a folder"))?;
            homes.insert(prefix, folder);
            continue;
        }
        let prefix = id.split('-').next().unwrap_or_default();
        let (name, not_run) = match rest.split_once(NOT_RUN) {
            Some((name, reason)) => (name, Some(reason)),
            None => (rest, None),
        };
        let (name, is_conformance) = match name.strip_suffix(CONFORMANCE) {
            Some(name) => (name, true),
            None => (name, false),
        };
        let path = if let Some((test, _)) = id.split_once('.') {
            let parent = rows
                .iter_mut()
                .find(|row| row.id == test)
                .with_context(|| format!("upstream_tests.txt: {id} precedes {test}"))?;
            parent.has_sub_cases = true;
            let test = parent.path[0].clone();
            std::iter::once(test)
                .chain(name.split('/').map(sub_case_name))
                .collect()
        } else {
            vec![test_name(name)]
        };
        rows.push(Row {
            id,
            home: homes
                .get(prefix)
                .with_context(|| format!("upstream_tests.txt: {id}: {prefix} has no home"))?,
            name,
            path,
            has_sub_cases: false,
            not_run,
            is_conformance,
        });
    }
    Ok(rows)
}

/// `test_real_history_list_controller_revisions`, `bench_list_controller_revisions`.
fn test_name(name: &str) -> String {
    let words = snake_case(name);
    if let Some(benchmark) = words.strip_prefix("benchmark_") {
        format!("bench_{benchmark}")
    } else if words.starts_with("test_") {
        words
    } else {
        format!("test_{words}")
    }
}

fn sub_case_name(name: &str) -> String {
    let words = snake_case(name);
    if words.starts_with(|first: char| first.is_ascii_digit()) {
        format!("case_{words}")
    } else {
        words
    }
}

/// Converts a name to snake case. An underscore separates a small letter or digit from a capital,
/// and an acronym (with a plural `s`) from the next word. Other characters become an underscore,
/// except apostrophes, which are dropped.
fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().filter(|c| *c != '\'').collect();
    let mut words = String::new();
    for (index, c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(index + 1);
        let is_plural = after == Some(&'s')
            && !chars
                .get(index + 2)
                .is_some_and(|letter| letter.is_alphabetic());
        let starts = c.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_uppercase()
                        && !is_plural
                        && after.is_some_and(|after| after.is_lowercase()))
            });
        if starts {
            words.push('_');
        }
        words.push(if c.is_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        });
    }
    words
        .split('_')
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("_")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_become_snake_case() {
        let tests = [
            (
                "TestStatefulSetControl_getSetRevisions",
                "test_stateful_set_control_get_set_revisions",
            ),
            (
                "TestOrphanedPodsWithPVCDeletePolicy",
                "test_orphaned_pods_with_pvc_delete_policy",
            ),
            ("Setting .start.ordinal", "test_setting_start_ordinal"),
            ("should delete PVCs", "test_should_delete_pvcs"),
            ("BenchmarkList", "bench_list"),
        ];
        for (upstream, ported) in tests {
            assert_eq!(test_name(upstream), ported);
        }
        let sub_cases = [
            ("doesn't select another", "doesnt_select_another"),
            ("1.34 set, 1.33+1.34 rev", "case_1_34_set_1_33_1_34_rev"),
            ("withRef, no UID", "with_ref_no_uid"),
            (
                "terminating pod at ordinal [5 4]",
                "terminating_pod_at_ordinal_5_4",
            ),
        ];
        for (upstream, ported) in sub_cases {
            assert_eq!(sub_case_name(upstream), ported);
        }
    }

    #[test]
    fn table_has_449_rows_with_different_names() {
        let rows = parse(UPSTREAM_TESTS).expect("the table is valid");
        assert_eq!(rows.len(), 449);
        let count = |prefix: &str| rows.iter().filter(|row| row.id.starts_with(prefix)).count();
        let counts = ["HIS", "POD", "SET", "CTL", "INT", "E2E", "REG", "CLI"].map(count);
        assert_eq!(counts, [70, 120, 144, 48, 19, 33, 14, 1]);
        let names: BTreeSet<_> = rows.iter().map(|row| (row.home, &row.path)).collect();
        assert_eq!(names.len(), 449);
        let not_run = rows.iter().filter(|row| row.not_run.is_some());
        assert_eq!(not_run.count(), 4);
        let conformance = rows.iter().filter(|row| row.is_conformance);
        let conformance: Vec<&str> = conformance.map(|row| row.id).collect();
        let wanted = ["05", "06", "11", "12", "13", "14", "15", "16"];
        assert_eq!(conformance, wanted.map(|number| format!("E2E-{number}")));
    }

    #[test]
    fn malformed_rows_are_errors_with_their_text() {
        for (table, part) in [
            ("A-01\n", "A-01: expected ID NAME"),
            ("A-01 TestX\n", "A has no home"),
            ("home A\n", "expected a folder"),
            ("home A x\nA-01.1 y\n", "A-01.1 precedes A-01"),
        ] {
            let error = parse(table).expect_err(table).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
