//! Rust names in the documents: the tests and rules of the deviations.

use std::collections::BTreeSet;

use crate::{Findings, layout::CRATES, repository::SourceFile};

/// Keywords before a symbol's name.
const ITEMS: [&str; 9] = [
    "fn ",
    "struct ",
    "enum ",
    "trait ",
    "const ",
    "mod ",
    "type ",
    "static ",
    "macro_rules! ",
];

/// Header of the column that names a row.
const FIRST: &str = "#";

/// File with the rules, as pairs of a name and its effect.
const RULES: &str = "test/conformance/src/deviations.rs";

/// Checks the columns with the headers `columns` in the tables of a page. Each name in backquotes must
/// be an item of its crate prefix, or without a prefix of any crate; a name with a dash must be a rule
/// of the conformance runners. A header without a column is a finding.
pub fn check(page: &SourceFile, columns: &[&str], files: &[SourceFile]) -> Findings {
    let mut findings = Findings::new();
    for header in columns {
        let cells: Vec<(usize, &str)> = cells(&page.text, header).collect();
        if cells.is_empty() {
            findings.push(format!("{}: no table has a column {header}", page.path));
        }
        for (line, cell) in cells {
            let names = cell.split('`').skip(1).step_by(2);
            for symbol in names.filter(|symbol| !exists(symbol, files)) {
                findings.push(format!("{}:{line}: {symbol} does not exist", page.path));
            }
        }
    }
    findings
}

/// Compares the first cells of the tables with the columns `left` and `right`: a row of one needs a row
/// of the other.
pub fn check_rows(page: &SourceFile, left: &str, right: &str) -> Findings {
    let ids = |header| -> BTreeSet<&str> {
        let lines: BTreeSet<usize> = cells(&page.text, header).map(|(line, _)| line).collect();
        let rows = cells(&page.text, FIRST).filter(|(line, _)| lines.contains(line));
        rows.map(|(_, id)| id).collect()
    };
    let (left_ids, right_ids) = (ids(left), ids(right));
    let lost = left_ids.symmetric_difference(&right_ids);
    lost.map(|id| {
        format!(
            "{}: row {id} is in one of the tables with the columns {left} and {right}",
            page.path
        )
    })
    .collect()
}

/// The cells of the columns with a header, in all tables of a page, with their line numbers.
fn cells<'a>(page: &'a str, header: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let mut column = None;
    let mut inside = false;
    page.lines().enumerate().filter_map(move |(index, line)| {
        let row = line.strip_prefix('|');
        let starts = row.is_some() && !inside;
        inside = row.is_some();
        let mut cells = row?.split('|').map(str::trim);
        if starts {
            column = cells.position(|cell| cell == header);
            return None;
        }
        let cell = cells.nth(column?)?;
        (!cell.starts_with("---")).then_some((index + 1, cell))
    })
}

/// Returns true if the crate has an item, variant or field of that name.
fn exists(symbol: &str, files: &[SourceFile]) -> bool {
    if symbol.contains('-') {
        let rule = format!("({symbol:?}, ");
        return files
            .iter()
            .any(|file| file.path == RULES && file.text.contains(&rule));
    }
    let path = symbol.trim_end_matches("()");
    let (scope, name) = path.rsplit_once("::").unwrap_or(("", path));
    let scope: Vec<&str> = scope.split("::").filter(|part| !part.is_empty()).collect();
    files
        .iter()
        .filter(|file| {
            scope
                .first()
                .is_none_or(|first| in_crate(&file.path, first))
        })
        .any(|file| defines(&file.text, name))
}

/// Returns true for a path in the crate of that library name; any other first word matches every
/// crate.
fn in_crate(path: &str, first: &str) -> bool {
    let named = |name: &str| name.replace('-', "_") == first;
    let found = CRATES.iter().find(|(_, name)| named(name));
    found.is_none_or(|(folder, _)| path.starts_with(&format!("crates/{folder}/")))
}

fn defines(text: &str, name: &str) -> bool {
    if !text.contains(name) {
        return false;
    }
    text.lines().any(|line| {
        let code = line.trim_start();
        ITEMS.iter().any(|item| {
            code.split_once(item).is_some_and(|(before, rest)| {
                let whole = rest.strip_prefix(name).is_some_and(|rest| {
                    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                });
                let modifiers = before.split_whitespace().all(|word| {
                    word.starts_with("pub") || matches!(word, "async" | "const" | "in" | "super)")
                });
                whole && modifiers
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<SourceFile> {
        vec![
            SourceFile::new(
                "crates/history/src/hash.rs",
                "//! H.\npub(crate) const fn hash_controller_revision() {}\n/// fn ghost()\n",
            ),
            SourceFile::new("crates/client/src/queue.rs", "pub struct WorkQueue<K> {\n"),
            SourceFile::new(
                RULES,
                "const RULES: [Rule; 1] = [(\"a-rule\", |rules| {})];\n",
            ),
        ]
    }

    fn page(rows: &str) -> SourceFile {
        SourceFile::new(
            "docs/deviations.md",
            &format!("| `Go` | tests |\n|---|---|\n{rows}"),
        )
    }

    #[test]
    fn existing_symbols_pass() {
        let page = page(
            "| `HashX` | `statefulset_history::hash_controller_revision` |\n\
             | `queue` | `WorkQueue`, `statefulset_client::queue::WorkQueue` |\n| `x` | none |\n\
             | `y` | rule `a-rule` |\n\n| tests of nothing |\n|---|\n| `ghost` |\n",
        );
        assert_eq!(check(&page, &["tests"], &files()), Findings::new());
    }

    #[test]
    fn missing_and_moved_symbols_are_found() {
        let page = page(
            "| `A` | `ghost` |\n| `B` | `statefulset_client::hash_controller_revision` |\n\
             | `C` | `hash_controller` |\n| `D` | `no-rule` |\n",
        );
        assert_eq!(
            check(&page, &["tests", "rule"], &files()),
            [
                "docs/deviations.md:3: ghost does not exist",
                "docs/deviations.md:4: statefulset_client::hash_controller_revision does not exist",
                "docs/deviations.md:5: hash_controller does not exist",
                "docs/deviations.md:6: no-rule does not exist",
                "docs/deviations.md: no table has a column rule",
            ]
        );
    }

    #[test]
    fn rows_without_a_row_in_the_other_table_are_found() {
        let text = "| # | reason |\n|---|---|\n| 1 | r |\n| 2 | r |\n\n\
                    | # | tests |\n|---|---|\n| 1 | t |\n| 3 | t |\n";
        let page = SourceFile::new("a.md", text);
        assert_eq!(
            check_rows(&page, "reason", "tests"),
            [
                "a.md: row 2 is in one of the tables with the columns reason and tests",
                "a.md: row 3 is in one of the tables with the columns reason and tests",
            ]
        );
        let complete = SourceFile::new("a.md", &text.replace("| 3 |", "| 2 |"));
        assert_eq!(check_rows(&complete, "reason", "tests"), Findings::new());
    }
}
