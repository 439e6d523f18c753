//! The page that maps Go symbols to Rust items, and its completeness.
//!
//! Its sources are the documentation of the ported items, which ends with ``Upstream: `goName`.``,
//! and the list of the Go files' functions.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Context as _;

use crate::code_lines::is_for_tests;
use crate::items::{Kind, items};
use crate::{Findings, budgets::is_test_file, layout::CRATES, repository::SourceFile};

/// Path of the page.
pub const PAGE: &str = "docs/upstream-map.md";
/// The functions of the ported Go files.
pub const UPSTREAM_FUNCTIONS: &str = include_str!("../../upstream_functions.txt");

const HEAD: &str = "\
# Upstream map

Use this page to find the Rust counterpart of a Go symbol of Kubernetes v1.36.2, and its file.
A ported function keeps upstream's name in snake case, where it may drop a leading `get_` or `new_`; a note gives the reason for any other name.
`make fmt` writes the page from the `Upstream:` lines of the items' documentation.
";

/// Marker of the Go counterpart in an item's documentation.
const MARKER: &str = "Upstream: ";
/// The crates with the functions of the list.
const PORTED: [&str; 5] = [
    "history",
    "pod-control",
    "set-control",
    "controller",
    "controller-util",
];
/// Words of a note or of a reason, at least.
const NOTE_WORDS_MIN: usize = 3;

/// A function of a ported Go file.
#[derive(Debug, PartialEq, Eq)]
pub struct GoFunction<'a> {
    /// The Go file.
    pub file: &'a str,
    /// Its name, after the type of a method: `realHistory.CreateControllerRevision`.
    pub name: &'a str,
    /// The reason for having no counterpart.
    pub reason: Option<&'a str>,
}

impl GoFunction<'_> {
    /// Its name without the type of a method.
    fn short(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// True if an `Upstream:` line names the function, with its type or without.
    fn is_in(&self, named: &BTreeSet<String>) -> bool {
        named.contains(self.name) || named.contains(self.short())
    }
}

/// Parses the list of functions.
///
/// # Errors
/// A function precedes the first file.
pub fn parse(list: &str) -> anyhow::Result<Vec<GoFunction<'_>>> {
    let mut file = None;
    let mut functions = Vec::new();
    let lines = list.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(path) = line.strip_prefix("file ") {
            file = Some(path);
            continue;
        }
        let (name, reason) = match line.split_once(" | ") {
            Some((name, reason)) => (name, Some(reason)),
            None => (line, None),
        };
        let file = file.with_context(|| format!("upstream_functions.txt: {line}: no file"))?;
        functions.push(GoFunction { file, name, reason });
    }
    Ok(functions)
}

/// One ported item.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    go: Vec<String>,
    rust: String,
    is_function: bool,
    /// The rest of the line, after the Go names.
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

/// Finds renamed functions without a reason, functions of the list without a counterpart and without
/// a reason, and stale reasons.
pub fn check(functions: &[GoFunction<'_>], files: &[SourceFile]) -> Findings {
    let rows = ported_rows(files);
    let mut findings = Findings::new();
    for row in rows.iter().filter(|row| row.is_function) {
        if !row.keeps_name() && words(&row.note) < NOTE_WORDS_MIN {
            findings.push(format!(
                "{}: {} is {} upstream; take that name, or give the reason in its `Upstream:` line",
                row.file,
                row.rust,
                row.go.join(", ")
            ));
        }
    }
    let named = named(&rows);
    // A method's short name may be that of another file's method.
    let is_stale = |function: &GoFunction<'_>| {
        let same = functions.iter().filter(|it| it.short() == function.short());
        let is_unique = same.count() == 1;
        named.contains(function.name) || is_unique && function.is_in(&named)
    };
    for function in functions {
        let GoFunction { file, name, reason } = function;
        let finding = match reason {
            None if function.is_in(&named) => continue,
            None => "no item names it; add an `Upstream:` line, or the reason",
            Some(_) if is_stale(function) => "an item names it; remove the reason",
            Some(reason) if words(reason) < NOTE_WORDS_MIN => "the reason is too short",
            Some(_) => continue,
        };
        findings.push(format!("upstream_functions.txt: {file}: {name}: {finding}"));
    }
    findings
}

/// The rows of the crates with the functions of the list.
fn ported_rows(files: &[SourceFile]) -> Vec<Row> {
    let is_ported = |file: &&SourceFile| {
        let in_crate = |name: &&str| file.path.starts_with(&format!("crates/{name}/src/"));
        PORTED.iter().any(in_crate)
    };
    let production = files.iter().filter(is_ported);
    let (doubles, production): (Vec<_>, Vec<_>) =
        production.partition(|file| is_for_tests(&file.path));
    let mut found: Vec<Row> = production.into_iter().flat_map(rows).collect();
    // A double has its own names, but its Go counterpart counts as ported.
    found.extend(doubles.into_iter().flat_map(rows).map(|row| Row {
        is_function: false,
        ..row
    }));
    found
}

/// All Go names of the rows.
fn named(rows: &[Row]) -> BTreeSet<String> {
    rows.iter().flat_map(|row| row.go.iter().cloned()).collect()
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
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
pub fn page(functions: &[GoFunction<'_>], files: &[SourceFile]) -> String {
    let mut page = format!("{HEAD}{}\n", coverage(functions, files));
    for (folder, name) in CRATES {
        let prefix = format!("crates/{folder}/src/");
        let of_crate = files.iter().filter(|file| file.path.starts_with(&prefix));
        let rows: Vec<Row> = of_crate
            .filter(|file| !is_test_file(&file.path))
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
            let Row {
                rust, file, note, ..
            } = &row;
            let go: Vec<String> = row.go.iter().map(|name| format!("`{name}`")).collect();
            let go = go.join(", ");
            let short = file.trim_start_matches(&prefix);
            let _ = writeln!(page, "| {go} | `{rust}` | [{short}](../{file}) | {note} |");
        }
    }
    let _ = writeln!(
        page,
        "\n## Functions without a counterpart\n\n| Go | file | reason |\n|---|---|---|"
    );
    for function in functions {
        if let Some(reason) = function.reason {
            let GoFunction { file, name, .. } = function;
            let _ = writeln!(page, "| `{name}` | `{file}` | {reason} |");
        }
    }
    page
}

/// States the share of the list's functions that have a counterpart or a reason.
fn coverage(functions: &[GoFunction<'_>], files: &[SourceFile]) -> String {
    let named = named(&ported_rows(files));
    // A function with a reason may share its short name with a ported method of another type.
    let (explained, expected): (Vec<_>, Vec<_>) =
        functions.iter().partition(|it| it.reason.is_some());
    let explained = explained.len();
    let ported = expected.iter().filter(|it| it.is_in(&named)).count();
    let all = functions.len();
    let percent = 100 * (ported + explained) / all.max(1);
    format!(
        "The ported Go files have {all} functions: {ported} have a counterpart, and {explained} [have none for a reason](#functions-without-a-counterpart), together {percent} %."
    )
}

/// The ported items of one file, in order.
fn rows(file: &SourceFile) -> Vec<Row> {
    let items = items(&file.text).into_iter();
    let rows = items.filter_map(|item| {
        let (go, note) = upstream_names(&item.docs)?;
        Some(Row {
            go,
            note,
            is_function: item.kind == Kind::Function,
            rust: if item.kind == Kind::File {
                module(&file.path)
            } else {
                item.name
            },
            file: file.path.clone(),
        })
    });
    rows.collect()
}

/// Name of a file's module, or of the crate.
fn module(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name.trim_end_matches(".rs") {
        "lib" | "main" => folder.trim_end_matches("/src").to_owned(),
        name => format!("mod {name}"),
    }
}

/// The Go names at the start of the paragraph with the marker, and its rest as a note. Of a paragraph
/// that begins otherwise, the first name, and the whole text as a note.
fn upstream_names(docs: &str) -> Option<(Vec<String>, String)> {
    let (_, text) = docs.split_once(MARKER)?;
    let paragraph = text.split("\n\n").next().unwrap_or(text);
    let text = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut names = Vec::new();
    let mut rest = text.as_str();
    while let Some((name, after)) = rest.strip_prefix('`').and_then(|it| it.split_once('`')) {
        names.push(name.to_owned());
        rest = after;
        let separators = [", and ", ", ", " and "];
        let next = separators.iter().find_map(|it| after.strip_prefix(it));
        match next {
            Some(next) if next.starts_with('`') => rest = next,
            _ => break,
        }
    }
    if names.is_empty() {
        names.push(text.split('`').nth(1)?.to_owned());
    }
    let note = rest.trim_start_matches([',', ';', ':', '.', ' ']);
    let note = note.strip_suffix('.').unwrap_or(note);
    let note = note
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix(')'))
        .unwrap_or(note);
    Some((names, note.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
# A comment.

file pkg/a.go
updateStatus
Widget.deletePod
sort.Less | sorting takes a key
";

    fn functions() -> Vec<GoFunction<'static>> {
        parse(LIST).expect("the list is valid")
    }

    fn file(text: &str) -> SourceFile {
        SourceFile::new("crates/history/src/x.rs", text)
    }

    /// Has a counterpart for each function of the list.
    const COMPLETE: &str = "\
/// Upstream: `updateStatus`.
fn update_status() {}

impl Widget {
    /// Upstream: `deletePod`, as a method of the widget.
    fn pod_deleted() {}
}
";

    #[test]
    fn complete_map_passes() {
        assert_eq!(check(&functions(), &[file(COMPLETE)]), Findings::new());
        let coverage = coverage(&functions(), &[file(COMPLETE)]);
        assert!(coverage.contains("have 3 functions: 2 have a counterpart, and 1 "));
        assert!(coverage.ends_with("together 100 %."), "{coverage}");
    }

    #[test]
    fn renamed_function_needs_a_reason_of_three_words() {
        let text = COMPLETE.replace(", as a method of the widget", ", renamed");
        assert_eq!(
            check(&functions(), &[file(&text)]),
            [
                "crates/history/src/x.rs: Widget::pod_deleted is deletePod upstream; take that \
                 name, or give the reason in its `Upstream:` line"
            ]
        );
        for kept in [
            "/// Upstream: `getPodName`.\nfn pod_name() {}\n",
            "impl Widget {\n/// Upstream: `NewWidget`.\npub fn new() {}\n}\n",
            "/// Upstream: `hasPVCRef`.\nfn has_pvc_ref() {}\n",
            "/// Upstream: `fakeThing`.\npub struct Thing;\n",
        ] {
            let files = [file(&format!("{COMPLETE}{kept}"))];
            assert_eq!(check(&functions(), &files), Findings::new(), "{kept}");
        }
    }

    #[test]
    fn double_counts_as_a_counterpart_under_any_name() {
        let text = COMPLETE.replace(", as a method of the widget", "");
        let fake = SourceFile::new("crates/history/src/fake.rs", &text);
        assert_eq!(check(&functions(), &[fake]), Findings::new());
    }

    #[test]
    fn missing_functions_and_stale_reasons_are_found() {
        let text = COMPLETE.replace("`updateStatus`", "`less`");
        let mut functions = functions();
        functions[2].reason = Some("no need");
        functions[1].reason = Some("it is not needed here");
        assert_eq!(
            check(&functions, &[file(&text)])[1..],
            [
                "upstream_functions.txt: pkg/a.go: updateStatus: no item names it; add an \
                 `Upstream:` line, or the reason",
                "upstream_functions.txt: pkg/a.go: Widget.deletePod: an item names it; remove the \
                 reason",
                "upstream_functions.txt: pkg/a.go: sort.Less: the reason is too short",
            ]
        );
        assert!(parse("updateStatus\n").is_err());
    }

    #[test]
    fn notes_are_the_text_after_the_names() {
        for (docs, names, note) in [
            ("Upstream: `A`.", vec!["A"], ""),
            ("Does it.\n\nUpstream: `A` and\n`b`.", vec!["A", "b"], ""),
            ("Upstream: `A`, `b`, and `c`.", vec!["A", "b", "c"], ""),
            (
                "Upstream: `A`, which returns `b`.",
                vec!["A"],
                "which returns `b`",
            ),
            ("Upstream: `A` (gate `B`).", vec!["A"], "gate `B`"),
            (
                "Upstream: `A` and its callees.",
                vec!["A"],
                "and its callees",
            ),
            ("Upstream: the end of `A`.", vec!["A"], "the end of `A`"),
            ("Upstream: `A`.\n\nMore.", vec!["A"], ""),
        ] {
            let (found, text) = upstream_names(docs).expect("the docs name a symbol");
            assert_eq!(
                (found, text.trim_matches(['(', ')'])),
                (names.iter().map(|it| (*it).to_owned()).collect(), note),
                "{docs}"
            );
        }
        assert_eq!(upstream_names("Upstream has none."), None);
    }

    #[test]
    fn page_groups_items_by_crate_without_tests() {
        let files = [
            file("/// Upstream: `A`.\nfn a() {}\n"),
            SourceFile::new(
                "crates/history/src/x/tests.rs",
                "/// Upstream: `T`.\nfn t() {}\n",
            ),
        ];
        let page = page(&functions(), &files);
        let (_, tables) = page.split_once("\n## ").expect("the page has a table");
        assert_eq!(
            tables,
            "`statefulset-history`\n\n| Go | Rust | file | note |\n|---|---|---|---|\n\
             | `A` | `a` | [x.rs](../crates/history/src/x.rs) |  |\n\
             \n## Functions without a counterpart\n\n| Go | file | reason |\n|---|---|---|\n\
             | `sort.Less` | `pkg/a.go` | sorting takes a key |\n"
        );
    }
}
