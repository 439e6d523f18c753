//! Rust names in the documents: the tests and rules of the deviations.

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

/// File with the rules, as pairs of a name and its effect.
const RULES: &str = "test/conformance/src/deviations.rs";

/// Checks column `column` (from 0) of every table row of a page. Each name in backquotes must be an
/// item of its crate prefix, or without a prefix of any crate; a name with a dash must be a rule of
/// the conformance runners.
pub fn check(page: &SourceFile, column: usize, files: &[SourceFile]) -> Findings {
    let mut findings = Findings::new();
    for (index, line) in page.text.lines().enumerate() {
        for symbol in symbols(line, column) {
            if !exists(symbol, files) {
                findings.push(format!(
                    "{}:{}: {symbol} does not exist",
                    page.path,
                    index + 1
                ));
            }
        }
    }
    findings
}

/// Backquoted names in one cell of a table row.
fn symbols(line: &str, column: usize) -> impl Iterator<Item = &str> {
    let cell = line
        .strip_prefix('|')
        .and_then(|row| row.split('|').nth(column))
        .filter(|cell| !cell.trim_start().starts_with("---"))
        .unwrap_or_default();
    cell.split('`').skip(1).step_by(2)
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
            &format!("| Go | Rust |\n|---|---|\n{rows}"),
        )
    }

    #[test]
    fn existing_symbols_pass() {
        let page = page(
            "| `HashX` | `statefulset_history::hash_controller_revision` |\n\
             | `queue` | `WorkQueue`, `statefulset_client::queue::WorkQueue` |\n| `x` | none |\n\
             | `y` | rule `a-rule` |\n",
        );
        assert_eq!(check(&page, 1, &files()), Findings::new());
    }

    #[test]
    fn missing_and_moved_symbols_are_found() {
        let page = page(
            "| `A` | `ghost` |\n| `B` | `statefulset_client::hash_controller_revision` |\n\
             | `C` | `hash_controller` |\n| `D` | `no-rule` |\n",
        );
        assert_eq!(
            check(&page, 1, &files()),
            [
                "docs/deviations.md:3: ghost does not exist",
                "docs/deviations.md:4: statefulset_client::hash_controller_revision does not exist",
                "docs/deviations.md:5: hash_controller does not exist",
                "docs/deviations.md:6: no-rule does not exist",
            ]
        );
    }
}
