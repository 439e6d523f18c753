//! Applicability of the patches in `hack/mutants`.

pub mod page;

use crate::{Findings, repository::Repository};

const FOLDER: &str = "hack/mutants/";

/// Checks that each file contains the lines that its patch replaces.
pub fn check(repository: &Repository) -> Findings {
    let patches = repository.with_extension("patch");
    let ours = patches
        .iter()
        .filter(|patch| patch.path.starts_with(FOLDER));
    ours.flat_map(|patch| {
        let stale = stale_hunks(&patch.text, |path| Some(&repository.file(path)?.text));
        stale.into_iter().map(|why| {
            let path = &patch.path;
            format!("{path}: {why}; regenerate the patch")
        })
    })
    .collect()
}

/// Reasons why a patch does not apply; `text` returns the content of a file.
fn stale_hunks<'a>(patch: &str, text: impl Fn(&str) -> Option<&'a String>) -> Vec<String> {
    let mut stale = Vec::new();
    let mut hunks = 0;
    let (_, files) = patch.split_once("\n--- a/").unwrap_or_default();
    for file in files.split("\n--- a/") {
        let (path, body) = file.split_once('\n').unwrap_or_default();
        let Some(text) = text(path) else {
            stale.push(format!("{path:?} does not exist"));
            continue;
        };
        for hunk in body.split("\n@@ ").skip(1) {
            hunks += 1;
            if !text.contains(&lines_before(hunk)) {
                stale.push(format!("{path} lacks the replaced lines"));
            }
        }
    }
    if hunks == 0 && stale.is_empty() {
        stale.push("it has no hunks".to_owned());
    }
    stale
}

/// Context and removed lines of a hunk.
fn lines_before(hunk: &str) -> String {
    let lines = hunk.lines().skip(1);
    let before = lines.filter_map(|line| line.strip_prefix([' ', '-']));
    before.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "A bug.\n\nTests: a\n\n--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@ fn\n \
                         keep\n-old\n+new\n@@ -9 +9 @@\n-last\n";

    fn stale(text: &str) -> Vec<String> {
        let text = text.to_owned();
        stale_hunks(PATCH, |path| (path == "x.rs").then_some(&text))
    }

    #[test]
    fn changed_lines_are_found() {
        assert_eq!(stale("keep\nold\n…\nlast\n"), [""; 0]);
        let found = stale("keep\nnew\n…\nlast\n");
        assert_eq!(found, ["x.rs lacks the replaced lines"]);
        assert_eq!(stale("").len(), 2);
    }

    #[test]
    fn empty_patches_and_missing_files_are_found() {
        assert_eq!(stale_hunks(PATCH, |_| None), ["\"x.rs\" does not exist"]);
        assert_eq!(stale_hunks("A bug.\n", |_| None).len(), 1);
    }
}
