//! Words that the glossary avoids, in comments and pages.

use crate::{Findings, repository::SourceFile};

/// Words to avoid in any context, with the advice. The glossary lists more: those are right in some
/// contexts.
const AVOIDED: [(&str, &str); 21] = [
    ("the go controller", "write `the built-in controller`"),
    ("the tool", "write `the controller` or `the program`"),
    ("the daemon", "write `the program`"),
    ("fake cluster", "write `the test control plane`"),
    ("golden", "write `recorded`"),
    ("pvc", "write `claim`"),
    ("pvcs", "write `claims`"),
    ("wanted", "write `desired`, `expected` or `requested`"),
    ("present state", "write `current state`"),
    ("reply", "write `response`"),
    ("replies", "write `responses`"),
    ("slave", "write `standby`"),
    ("we", "name the actor"),
    ("somebody", "name the actor"),
    ("nobody", "name the actor"),
    ("whoever", "name the actor"),
    ("whomever", "name the actor"),
    ("anew", "write `again`"),
    ("for ever", "write `indefinitely`"),
    ("stock role", "write `default role`"),
    ("beside", "write `besides` or `next to`"),
];

/// Words to avoid in comments of code, with the advice and the places where they are right.
const AVOIDED_IN_COMMENTS: [(&[&str], &str, &[&str]); 2] = [
    (
        &["answer", "answers", "answered", "unanswered"],
        "write `response`, or `respond`",
        // The plugin speaks to people.
        &["crates/kubectl-sts/"],
    ),
    (
        &["member", "members"],
        "write `field`",
        &[
            // Members of JSON text, where a field is one of the table or of `fieldsV1`.
            "crates/apimachinery/src/json",
            "crates/test-control-plane/api/src/go/json/",
            "crates/test-control-plane/api/src/managed_fields/",
            "crates/test-control-plane/api/src/patch/json",
            "crates/test-control-plane/api/src/response/pretty.rs",
            "crates/test-control-plane/api/src/response/yaml",
            // Members of a set, of a group, of a list of errors, of a workspace.
            "crates/controller-util/src/controller_ref_manager/tests.rs",
            "crates/controller-util/src/error.rs",
            "crates/pod-control/src/stateful_set_utils/identity.rs",
            "crates/test-control-plane/server/src/auth",
            "crates/test-control-plane/src/bin/",
            "hack/tidy/",
            "test/conformance/src/model/failure.rs",
            "test/simulation/src/judges/identity.rs",
        ],
    ),
];

/// Pages that list the words, are generated, or come from upstream.
const SKIPPED: [&str; 4] = [
    "docs/glossary.md",
    "docs/metrics-list.md",
    "docs/upstream-map.md",
    "test/vectors/",
];

/// Checks the comments of Rust files, and the text of Markdown pages, without quoted code.
pub fn check(files: &[SourceFile]) -> Findings {
    let is_checked = |file: &&SourceFile| !SKIPPED.iter().any(|path| file.path.starts_with(path));
    files
        .iter()
        .filter(is_checked)
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &SourceFile) -> Findings {
    let words = words(file);
    let found = |(at, (line, _)): (usize, &(usize, String))| {
        let avoided = AVOIDED.iter().find(|(phrase, _)| {
            let mut pairs = phrase.split(' ').enumerate();
            pairs.all(|(next, word)| words.get(at + next).is_some_and(|(_, found)| found == word))
        });
        avoided.map(|(phrase, advice)| format!("{}:{line}: \"{phrase}\": {advice}", file.path))
    };
    let in_comments = AVOIDED_IN_COMMENTS.iter().filter(|(_, _, right)| {
        file.has_extension("rs") && !right.iter().any(|path| file.path.starts_with(path))
    });
    let in_comments = in_comments.flat_map(|(avoided, advice, _)| {
        let is_avoided = |(_, word): &&(usize, String)| avoided.contains(&word.as_str());
        let words = words.iter().filter(is_avoided);
        words.map(move |(line, word)| format!("{}:{line}: \"{word}\": {advice}", file.path))
    });
    let everywhere = words.iter().enumerate().filter_map(found);
    everywhere.chain(in_comments).collect()
}

/// The words of a file's prose in lower case, with their lines. A line of code is an empty word.
fn words(file: &SourceFile) -> Vec<(usize, String)> {
    let (is_rust, is_page) = (file.has_extension("rs"), file.has_extension("md"));
    let mut words = Vec::new();
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        let text = line.trim_start();
        let comment = text.strip_prefix("//").filter(|_| is_rust);
        let fence = is_page && text.starts_with("```");
        fenced ^= fence;
        let prose = comment.or((is_page && !fenced && !fence).then_some(text));
        let prose = prose.unwrap_or_default().split('`').step_by(2);
        let prose = prose.collect::<Vec<_>>().join(" code ");
        let is_inside = |c: char| c.is_alphanumeric() || c == '-' || c == '\'';
        let found = prose
            .split(|c| !is_inside(c))
            .filter(|word| !word.is_empty());
        let found: Vec<_> = found.map(|word| (index + 1, word.to_lowercase())).collect();
        if found.is_empty() {
            words.push((index + 1, String::new()));
        }
        words.extend(found);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Findings {
        check(&[SourceFile::new(path, text)])
    }

    #[test]
    fn every_avoided_word_is_found_in_comments_and_pages() {
        for (phrase, advice) in AVOIDED {
            let phrase = phrase.replace(' ', "\n/// ");
            let comment = found("x.rs", &format!("let x = 1;\n    /// A {phrase}.\n"));
            assert_eq!(comment.len(), 1, "{phrase}");
            assert!(comment[0].starts_with("x.rs:2: "), "{comment:?}");
            assert!(comment[0].ends_with(advice), "{comment:?}");
            let page = phrase.replace("\n/// ", "\n").to_uppercase();
            assert_eq!(
                found("x.md", &format!("# A\n\n{page}\n")).len(),
                1,
                "{page}"
            );
        }
    }

    #[test]
    fn words_of_comments_are_found_where_they_are_wrong() {
        for (words, advice, right) in AVOIDED_IN_COMMENTS {
            for word in words {
                let text = format!("let {word} = 1;\n/// The {word} of `{word}`.\n");
                let wrong = found("crates/x/src/x.rs", &text);
                assert_eq!(
                    wrong,
                    [format!("crates/x/src/x.rs:2: \"{word}\": {advice}")]
                );
                for path in right {
                    let file = format!("{path}x.rs");
                    assert_eq!(found(&file, &text), Findings::new(), "{file}");
                }
                let page = found("x.md", &format!("# A\n\nThe {word}.\n"));
                assert_eq!(page, Findings::new());
            }
        }
    }

    #[test]
    fn code_longer_words_and_data_pass() {
        let page = "The `PVC` of weeks, re-reply.\n\n```sh\ngolden\n```\n";
        assert_eq!(found("x.md", page), Findings::new());
        assert_eq!(
            found("x.rs", "let golden = 1;\n// For\nlet ever = 2;\n"),
            Findings::new()
        );
        assert_eq!(found("x.json", "{\"golden\": 1}\n"), Findings::new());
        assert_eq!(found("docs/glossary.md", "| golden |\n"), Findings::new());
    }
}
