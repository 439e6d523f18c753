//! The mistakes of `hack/mutants` fit the code that they are made in.

use crate::{Findings, repository::Repository};

const FOLDER: &str = "hack/mutants/";

/// Checks that the lines which each patch takes stand in its file.
pub fn check(repository: &Repository) -> Findings {
    let patches = repository.with_extension("patch");
    let ours = patches
        .iter()
        .filter(|patch| patch.path.starts_with(FOLDER));
    ours.flat_map(|patch| {
        let stale = stale_hunks(&patch.text, |path| Some(&repository.file(path)?.text));
        stale.into_iter().map(|why| {
            let path = &patch.path;
            format!("{path}: {why}; make the patch anew with the code")
        })
    })
    .collect()
}

/// What of a patch doesn't fit; `text` is the content of a file.
fn stale_hunks<'a>(patch: &str, text: impl Fn(&str) -> Option<&'a String>) -> Vec<String> {
    let mut stale = Vec::new();
    let mut hunks = 0;
    let (_, files) = patch.split_once("\n--- a/").unwrap_or_default();
    for file in files.split("\n--- a/") {
        let (path, body) = file.split_once('\n').unwrap_or_default();
        let Some(text) = text(path) else {
            stale.push(format!("there is no {path:?}"));
            continue;
        };
        for hunk in body.split("\n@@ ").skip(1) {
            hunks += 1;
            if !text.contains(&lines_before(hunk)) {
                stale.push(format!("the lines that it changes are not in {path}"));
            }
        }
    }
    if hunks == 0 && stale.is_empty() {
        stale.push("it changes nothing".to_owned());
    }
    stale
}

/// The lines that a hunk is for, as they were.
fn lines_before(hunk: &str) -> String {
    let lines = hunk.lines().skip(1);
    let before = lines.filter_map(|line| line.strip_prefix([' ', '-']));
    before.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "What for.\n\nTests: a\n\n--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@ fn\n \
                         keep\n-old\n+new\n@@ -9 +9 @@\n-last\n";

    fn stale(text: &str) -> Vec<String> {
        let text = text.to_owned();
        stale_hunks(PATCH, |path| (path == "x.rs").then_some(&text))
    }

    #[test]
    fn lines_that_have_changed_since_are_found() {
        assert_eq!(stale("keep\nold\n…\nlast\n"), [""; 0]);
        let found = stale("keep\nnew\n…\nlast\n");
        assert_eq!(found, ["the lines that it changes are not in x.rs"]);
        assert_eq!(stale("").len(), 2);
    }

    #[test]
    fn a_patch_of_nothing_and_one_of_a_file_that_is_gone_are_found() {
        assert_eq!(stale_hunks(PATCH, |_| None), ["there is no \"x.rs\""]);
        assert_eq!(stale_hunks("What for.\n", |_| None).len(), 1);
    }
}
