//! The status line of the README: which upstream is tracked and how much of its tests is ported.

use std::collections::BTreeSet;

use anyhow::Context as _;

use crate::repository::SourceFile;

/// The reference's version.
pub const UPSTREAM_VERSION: &str = "v1.36.2";

/// The list of upstream's tests, see the head of the file.
pub const UPSTREAM_TESTS: &str = include_str!("../upstream_tests.txt");

const BEGIN: &str = "<!-- status: written by `make fmt`, checked by hack/tidy -->";

/// One upstream test.
#[derive(Debug, PartialEq, Eq)]
struct UpstreamTest<'a> {
    /// Folder of the package it belongs to, `crates/history`.
    home: &'a str,
    /// The name that its port carries, `test_real_history_list_controller_revisions`.
    ported_name: String,
}

/// The status line for the Rust files of the repository.
///
/// # Errors
/// A line of `list` that does not have the form `ID ROWS HOME NAME`.
pub fn line(list: &str, files: &[SourceFile]) -> anyhow::Result<String> {
    let tests = parse(list)?;
    let ported = tests.iter().filter(|test| is_ported(test, files)).count();
    let missing: BTreeSet<&str> = tests
        .iter()
        .filter(|test| !is_ported(test, files))
        .map(|test| test.home)
        .collect();
    let rest = if missing.is_empty() {
        String::new()
    } else {
        let homes: Vec<String> = missing.iter().map(|home| format!("`{home}`")).collect();
        format!(" Still to port: tests of {}.", homes.join(", "))
    };
    Ok(format!(
        "Tracks Kubernetes {UPSTREAM_VERSION}. Ported upstream tests: {ported} of {}.{rest}",
        tests.len()
    ))
}

/// The README with its status line replaced.
///
/// # Errors
/// The README has no marker, or nothing after it.
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

fn parse(list: &str) -> anyhow::Result<Vec<UpstreamTest<'_>>> {
    let lines = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter(|line| !is_benchmark(line))
        .map(parse_line)
        .collect()
}

fn is_benchmark(line: &str) -> bool {
    line.split(' ').next().is_some_and(|id| id.contains("-B"))
}

fn parse_line(line: &str) -> anyhow::Result<UpstreamTest<'_>> {
    let mut words = line.splitn(4, ' ').skip(2);
    let (home, name) = words
        .next()
        .zip(words.next())
        .with_context(|| format!("upstream_tests.txt: {line}: expected ID ROWS HOME NAME"))?;
    Ok(UpstreamTest {
        home,
        ported_name: ported_name(name),
    })
}

/// Upstream's name in snake case: an underscore between a small letter or digit and a capital and
/// between an acronym and the next word, everything else that is no letter or digit an underscore.
fn ported_name(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut words = String::new();
    for (index, c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(index + 1);
        let starts = c.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
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
    let name = words
        .split('_')
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("_");
    if name.starts_with("test_") {
        name
    } else {
        format!("test_{name}")
    }
}

fn is_ported(test: &UpstreamTest<'_>, files: &[SourceFile]) -> bool {
    let function = format!("fn {}(", test.ported_name);
    let module = format!("mod {} {{", test.ported_name);
    let file = format!("/{}.rs", test.ported_name);
    let home = format!("{}/", test.home);
    files
        .iter()
        .filter(|found| found.path.starts_with(&home))
        .any(|found| {
            found.text.contains(&function)
                || found.text.contains(&module)
                || found.path.ends_with(&file)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_converted_as_the_ports_are_called() {
        let cases = [
            (
                "TestStatefulSetControl_getSetRevisions",
                "test_stateful_set_control_get_set_revisions",
            ),
            (
                "TestOrphanedPodsWithPVCDeletePolicy",
                "test_orphaned_pods_with_pvc_delete_policy",
            ),
            ("Setting .start.ordinal", "test_setting_start_ordinal"),
        ];
        for (upstream, ported) in cases {
            assert_eq!(ported_name(upstream), ported);
        }
    }

    #[test]
    fn the_list_holds_159_tests_with_names_of_their_own() {
        let tests = parse(UPSTREAM_TESTS).expect("the list is well formed");
        assert_eq!(tests.len(), 159);
        let names: BTreeSet<&str> = tests.iter().map(|test| test.ported_name.as_str()).collect();
        assert_eq!(names.len(), 159);
    }

    #[test]
    fn a_test_counts_where_it_belongs() {
        let list = "# head\nA-01 1 crates/a TestOne\nA-B1 9 crates/a BenchmarkX\nB-01 1 crates/b TestTwo\n";
        let files = [SourceFile::new(
            "crates/a/src/x.rs",
            "    fn test_one() {}\n    fn test_two() {}\n",
        )];
        assert_eq!(
            line(list, &files).expect("the list is well formed"),
            "Tracks Kubernetes v1.36.2. Ported upstream tests: 1 of 2. \
             Still to port: tests of `crates/b`."
        );
    }

    #[test]
    fn the_line_after_the_marker_is_replaced_and_a_lost_marker_is_an_error() {
        let readme = format!("# A\n\n{BEGIN}\nold\n\nrest\n");
        assert_eq!(
            rewrite(&readme, "new").expect("the marker is there"),
            format!("# A\n\n{BEGIN}\nnew\n\nrest\n")
        );
        assert!(rewrite("# A\n", "new").is_err());
    }
}
