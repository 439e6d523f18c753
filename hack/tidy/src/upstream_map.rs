//! The page that maps Go symbols to Rust items.
//!
//! Its source is the documentation of the ported items, which ends with ``Upstream: `goName`.``

use std::fmt::Write as _;

use crate::{budgets::is_test_file, layout::CRATES, repository::SourceFile};

/// Path of the page.
pub const PAGE: &str = "docs/upstream-map.md";

const HEAD: &str = "\
# Upstream map

Go symbols of Kubernetes v1.36.2 and what they are called here.
Ported functions keep upstream's names in snake case, so this page is mostly for finding the file.
It is made from the `Upstream:` lines of the items' documentation by `make fmt`.
";

/// Marker of the Go counterpart in an item's documentation.
const MARKER: &str = "Upstream: ";

/// One ported item.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    go: String,
    rust: String,
    file: String,
}

/// Returns the page for the Rust files of the repository.
pub fn page(files: &[SourceFile]) -> String {
    let mut page = HEAD.to_owned();
    for (folder, name) in CRATES {
        let prefix = format!("crates/{folder}/src/");
        let rows: Vec<Row> = files
            .iter()
            .filter(|file| file.path.starts_with(&prefix) && !is_test_file(&file.path))
            .flat_map(rows)
            .collect();
        if rows.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(page, "\n## `{name}`\n\n| Go | Rust | file |\n|---|---|---|");
        for Row { go, rust, file } in rows {
            let short = file.trim_start_matches(&prefix);
            let _ = writeln!(page, "| {go} | `{rust}` | [{short}](../{file}) |");
        }
    }
    page
}

/// The ported items of one file, in order.
fn rows(file: &SourceFile) -> Vec<Row> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut rows = Vec::new();
    let mut around = String::new();
    for (index, line) in lines.iter().enumerate() {
        if let Some(owner) = owner(line) {
            around = owner;
        } else if *line == "}" {
            around.clear();
        }
        let Some(go) = upstream_names(&lines[index..]) else {
            continue;
        };
        let rust = if line.starts_with("//!") {
            Some(module(&file.path))
        } else {
            item_after(&lines[index..]).map(|item| {
                if line.starts_with(' ') && !around.is_empty() {
                    format!("{around}::{item}")
                } else {
                    item
                }
            })
        };
        rows.extend(rust.map(|rust| Row {
            go,
            rust,
            file: file.path.clone(),
        }));
    }
    rows
}

/// Name of a file's module, or of the crate.
fn module(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name.trim_end_matches(".rs") {
        "lib" | "main" => folder.trim_end_matches("/src").to_owned(),
        name => format!("mod {name}"),
    }
}

/// Backquoted Go names in a documentation paragraph that begins with the marker.
fn upstream_names(lines: &[&str]) -> Option<String> {
    let text = documentation(lines.first()?)?;
    let first = text.split_once(MARKER)?.1;
    let more = lines[1..]
        .iter()
        .map_while(|line| documentation(line).filter(|line| !line.is_empty()));
    let text = std::iter::once(first)
        .chain(more)
        .collect::<Vec<_>>()
        .join(" ");
    let names: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Text of a documentation line.
fn documentation(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))
        .map(str::trim)
}

/// Type of the `impl` block that a line opens.
fn owner(line: &str) -> Option<String> {
    let head = line.strip_suffix('{')?.trim_end();
    let head = ["pub ", "pub(crate) ", "pub(super) "]
        .iter()
        .find_map(|visibility| head.strip_prefix(visibility))
        .unwrap_or(head);
    if let Some(rest) = head.strip_prefix("impl") {
        let rest = rest.split(" where ").next().unwrap_or(rest);
        let target = rest.rsplit(" for ").next().unwrap_or(rest);
        return name_in(skip_generics(target.trim()));
    }
    ["trait ", "struct ", "enum "]
        .iter()
        .find_map(|keyword| head.strip_prefix(keyword))
        .and_then(name_in)
}

/// `<K: Kind> Queue<K>` without the leading parameters.
fn skip_generics(text: &str) -> &str {
    if !text.starts_with('<') {
        return text;
    }
    let mut depth = 0;
    for (index, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if !text[..index].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text[index + 1..].trim_start();
        }
    }
    text
}

/// The documented item after a comment: a function, type, constant, variant or field.
fn item_after(lines: &[&str]) -> Option<String> {
    let mut open = 0_i32;
    for line in lines {
        let code = line.trim();
        if open > 0 || code.starts_with("#[") {
            // An attribute may span lines.
            open += balance(code);
            continue;
        }
        if code.is_empty() || code.starts_with("//") {
            continue;
        }
        let words: Vec<&str> = code.split_whitespace().collect();
        let keyword = words.iter().position(|word| {
            matches!(
                *word,
                "fn" | "struct" | "enum" | "trait" | "type" | "static" | "mod"
            )
        });
        let constant = words.iter().position(|word| *word == "const");
        let at = keyword.or(constant).map_or(0, |at| at + 1);
        let at = if keyword.is_none() && constant.is_none() {
            words
                .iter()
                .position(|word| !word.starts_with("pub"))
                .unwrap_or(0)
        } else {
            at
        };
        return words.get(at).and_then(|word| name_in(word));
    }
    None
}

fn balance(code: &str) -> i32 {
    let count = |c: char| i32::try_from(code.matches(c).count()).unwrap_or(0);
    count('[') - count(']') + count('(') - count(')')
}

/// The identifier at the start of a text; for a path its last part.
fn name_in(text: &str) -> Option<String> {
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
        .unwrap_or(text.len());
    let path = text[..end].trim_end_matches(':');
    let name = path.rsplit("::").next().unwrap_or(path);
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(go: &str, rust: &str) -> Row {
        Row {
            go: go.to_owned(),
            rust: rust.to_owned(),
            file: "crates/history/src/x.rs".to_owned(),
        }
    }

    #[test]
    fn items_of_every_kind_are_named() {
        let text = "\
//! Upstream: `history`.

/// Does it.
///
/// Upstream: `DoIt` and
/// `doIt`.
#[expect(
    clippy::x,
    reason = \"why\"
)]
pub async fn do_it<T>(x: T) {
}

/// Upstream: `maxSize`.
pub(crate) const MAX_SIZE: usize = 1;

/// Upstream: `Queue`.
pub struct Queue<K> {
    /// Upstream: `Queue.depth`.
    pub depth: usize,
}

impl<K: Ord, F: Fn() -> K> crate::Work for Queue<K> {
    /// Upstream: `Queue.Add`.
    fn add(&self) {
    }
}

/// No counterpart.
/// Upstream has none.
fn other() {}
";
        let file = SourceFile::new("crates/history/src/x.rs", text);
        assert_eq!(
            rows(&file),
            [
                row("`history`", "mod x"),
                row("`DoIt`, `doIt`", "do_it"),
                row("`maxSize`", "MAX_SIZE"),
                row("`Queue`", "Queue"),
                row("`Queue.depth`", "Queue::depth"),
                row("`Queue.Add`", "Queue::add"),
            ]
        );
    }

    #[test]
    fn page_groups_items_by_crate_without_tests() {
        let files = [
            SourceFile::new("crates/history/src/x.rs", "/// Upstream: `A`.\nfn a() {}\n"),
            SourceFile::new(
                "crates/history/src/x/tests.rs",
                "/// Upstream: `T`.\nfn t() {}\n",
            ),
        ];
        let page = page(&files);
        let table = page
            .strip_prefix(HEAD)
            .expect("the page begins with the header");
        assert_eq!(
            table,
            "\n## `statefulset-history`\n\n| Go | Rust | file |\n|---|---|---|\n\
             | `A` | `a` | [x.rs](../crates/history/src/x.rs) |\n"
        );
    }
}
