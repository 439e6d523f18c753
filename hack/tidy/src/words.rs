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
    ("wanted state", "write `desired state`"),
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
    words.iter().enumerate().filter_map(found).collect()
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
