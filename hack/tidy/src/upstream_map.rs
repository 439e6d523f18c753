//! The page that maps Go symbols to Rust items.
//!
//! Its source is the documentation of the ported items, which ends with ``Upstream: `goName`.``

use std::fmt::Write as _;

use crate::{Findings, budgets::is_test_file, layout::CRATES, repository::SourceFile};

/// Path of the page.
pub const PAGE: &str = "docs/upstream-map.md";

const HEAD: &str = "\
# Upstream map

Go symbols of Kubernetes v1.36.2 and what they are called here.
Use this page to find the file of a Go symbol.
Ported functions keep upstream's names in snake case, without a leading `get_` or `new_` where Rust has none; a note gives the reason for another name.
`make fmt` writes the page from the `Upstream:` lines of the items' documentation.
";

/// Marker of the Go counterpart in an item's documentation.
const MARKER: &str = "Upstream: ";

/// One ported item.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    go: Vec<String>,
    rust: String,
    is_function: bool,
    /// The words of the documentation beside the Go names.
    note: String,
    file: String,
}

impl Row {
    /// True for an item with the name of one of its Go counterparts.
    fn keeps_name(&self) -> bool {
        let rust = self.rust.rsplit("::").next().unwrap_or(&self.rust);
        self.go.iter().any(|go| {
            let go = snake_case(go.rsplit('.').next().unwrap_or(go));
            let short = go.strip_prefix("get_").or_else(|| go.strip_prefix("new_"));
            rust == go || short == Some(rust) || rust == "new" && go.starts_with("new_")
        })
    }
}

/// Ported functions under another name without a note that says why.
pub fn check(files: &[SourceFile]) -> Findings {
    let is_ported = |file: &&SourceFile| {
        let prefixes = ["history", "pod-control", "set-control", "controller"];
        let in_crate = |name: &&str| file.path.starts_with(&format!("crates/{name}/src/"));
        prefixes.iter().any(in_crate) && !is_for_tests(&file.path)
    };
    files
        .iter()
        .filter(is_ported)
        .flat_map(rows)
        .filter(|row| row.is_function && row.note.is_empty() && !row.keeps_name())
        .map(|row| {
            format!(
                "{}: {} is {} upstream; take that name, or give the reason in its `Upstream:` line",
                row.file,
                row.rust,
                row.go.join(", ")
            )
        })
        .collect()
}

/// True for tests, fakes and fixtures.
fn is_for_tests(path: &str) -> bool {
    let parts = ["/upstream", "/testing", "/fake", "/test_setup"];
    is_test_file(path) || parts.iter().any(|part| path.contains(part))
}

/// `updateStatefulSet` in snake case; an acronym is one word.
fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (index, c) in chars.iter().enumerate() {
        let after_lower = index > 0 && chars.get(index - 1).is_some_and(|c| !c.is_uppercase());
        let before_lower = chars.get(index + 1).is_some_and(|c| c.is_lowercase());
        if c.is_uppercase() && index > 0 && (after_lower || before_lower) {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
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
        let _ = writeln!(
            page,
            "\n## `{name}`\n\n| Go | Rust | file | note |\n|---|---|---|---|"
        );
        for row in rows {
            let Row { rust, file, .. } = &row;
            let go: Vec<String> = row.go.iter().map(|name| format!("`{name}`")).collect();
            let go = go.join(", ");
            let short = file.trim_start_matches(&prefix);
            let note = if row.is_function && !row.keeps_name() {
                &row.note
            } else {
                ""
            };
            let _ = writeln!(page, "| {go} | `{rust}` | [{short}](../{file}) | {note} |");
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
        let Some((go, note)) = upstream_names(&lines[index..]) else {
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
        let is_function = !line.starts_with("//!") && is_function(&lines[index..]);
        rows.extend(rust.map(|rust| Row {
            go,
            rust,
            is_function,
            note,
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

/// Backquoted Go names in a documentation paragraph that begins with the marker, and its other
/// words.
fn upstream_names(lines: &[&str]) -> Option<(Vec<String>, String)> {
    let text = documentation(lines.first()?)?;
    let first = text.split_once(MARKER)?.1;
    let more = lines[1..]
        .iter()
        .map_while(|line| documentation(line).filter(|line| !line.is_empty()));
    let text = std::iter::once(first)
        .chain(more)
        .collect::<Vec<_>>()
        .join(" ");
    let parts: Vec<&str> = text.split('`').collect();
    let names = parts.iter().skip(1).step_by(2);
    let names: Vec<String> = names.map(|name| (*name).to_owned()).collect();
    let words = parts.iter().step_by(2).flat_map(|part| part.split(' '));
    let words = words.map(|word| word.trim_matches([',', '.', ';', '(', ')']));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    (!names.is_empty()).then(|| (names, words.join(" ")))
}

/// True if the item after a comment is a function.
fn is_function(lines: &[&str]) -> bool {
    let code = lines.iter().map(|line| line.trim_start());
    let mut code = code.skip_while(|line| !line.contains("fn ") && !is_other_item(line));
    code.next()
        .is_some_and(|line| line.contains("fn ") && !line.starts_with("//"))
}

fn is_other_item(line: &str) -> bool {
    let starts = [
        "pub ", "pub(", "struct ", "enum ", "trait ", "const ", "mod ", "type ", "impl", "}",
    ];
    starts.iter().any(|start| line.starts_with(start))
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

    /// The names of a row, as `Go names -> Rust name`.
    fn names(row: &Row) -> String {
        format!("{} -> {}", row.go.join(", "), row.rust)
    }

    #[test]
    fn renamed_function_needs_a_reason() {
        let text = "\
/// Upstream: `updateStatus`.
fn update_status() {}

/// Upstream: `getPodName`.
fn pod_name() {}

impl Widget {
    /// Upstream: `NewWidget`.
    pub fn new() {}

    /// Upstream: `hasPVCRef`.
    fn has_pvc_ref() {}

    /// Upstream: `deletePod`.
    fn pod_deleted() {}

    /// Upstream: `isMemberOf`, which returns a bool.
    fn membership() {}
}

/// Upstream: `fakeThing`.
pub struct Thing;
";
        let file = SourceFile::new("crates/history/src/x.rs", text);
        assert_eq!(
            check(&[file]),
            [
                "crates/history/src/x.rs: Widget::pod_deleted is deletePod upstream; take that name, \
              or give the reason in its `Upstream:` line"
            ]
        );
        let fake = SourceFile::new("crates/history/src/fake.rs", text);
        assert!(check(&[fake]).is_empty());
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
        let names: Vec<String> = rows(&file).iter().map(names).collect();
        assert_eq!(
            names,
            [
                "history -> mod x",
                "DoIt, doIt -> do_it",
                "maxSize -> MAX_SIZE",
                "Queue -> Queue",
                "Queue.depth -> Queue::depth",
                "Queue.Add -> Queue::add",
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
            "\n## `statefulset-history`\n\n| Go | Rust | file | note |\n|---|---|---|---|\n\
             | `A` | `a` | [x.rs](../crates/history/src/x.rs) |  |\n"
        );
    }
}
