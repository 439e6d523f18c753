//! Prose of a file: comments, documentation, messages, test names, Markdown.

use super::passage::{Kind, Passage};
use crate::{
    items::{Item, items},
    repository::SourceFile,
};

mod rust;

/// Pages and data that are not written by hand here; the sources of generated pages are checked.
const SKIPPED: [&str; 4] = [
    "docs/flags.md",
    "docs/upstream-map.md",
    "test/vectors/",
    "LICENSE",
];

/// Every passage of a file.
pub(crate) fn passages(file: &SourceFile) -> Vec<Passage> {
    if SKIPPED.iter().any(|skipped| file.path.starts_with(skipped)) {
        return Vec::new();
    }
    let extension = file.name().rsplit_once('.').map_or("", |(_, end)| end);
    match extension {
        "rs" => {
            let mut found = rust::passages(&file.text);
            found.extend(test_names(file));
            found
        }
        "md" => markdown(&file.text),
        "patch" => {
            let header = file.text.split("\n--- a/").next().unwrap_or_default();
            vec![Passage::new(Kind::Plain, 1, header)]
        }
        "txt" if file.name() == "NOTES.txt" => vec![Passage::new(Kind::Plain, 1, &file.text)],
        "lock" | "json" | "jsonl" | "gz" => Vec::new(),
        _ => comments(&file.text),
    }
}

/// Names of the project's own tests, as sentences; ported tests keep upstream's names.
fn test_names(file: &SourceFile) -> Vec<Passage> {
    let line_of = |name: &str| {
        let declaration = format!("fn {name}(");
        let line = file
            .text
            .lines()
            .position(|line| line.contains(&declaration));
        line.map_or(1, |line| line + 1)
    };
    if file.path.contains("/upstream/") || file.name() == "upstream.rs" {
        return Vec::new();
    }
    let tests = items(&file.text).into_iter().filter(Item::is_test);
    tests
        .filter(|test| !test.name.starts_with("test_"))
        .map(|test| {
            let line = line_of(&test.name);
            Passage::new(Kind::TestName, line, &test.name.replace('_', " "))
        })
        .collect()
}

/// Headings and paragraphs outside code fences.
fn markdown(text: &str) -> Vec<Passage> {
    let mut found = Vec::new();
    let mut fenced = false;
    let mut paragraph: Option<Passage> = None;
    for (index, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        let heading = line.starts_with('#');
        if fenced || fence || heading || line.trim().is_empty() {
            found.extend(paragraph.take());
            if heading && !fenced && !fence {
                found.push(Passage::new(Kind::Heading, index + 1, line));
            }
            continue;
        }
        match &mut paragraph {
            Some(passage) => {
                passage.text.push('\n');
                passage.text.push_str(line);
            }
            None => paragraph = Some(Passage::new(Kind::Plain, index + 1, line)),
        }
    }
    found.extend(paragraph);
    found
}

/// Comments that begin with `#`, and the descriptions of manifests.
fn comments(text: &str) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let prose = comment(line);
        let Some(prose) = prose else {
            open = false;
            continue;
        };
        match found.last_mut().filter(|_| open) {
            Some(passage) => {
                passage.text.push('\n');
                passage.text.push_str(prose);
            }
            None => found.push(Passage::new(Kind::Plain, index + 1, prose)),
        }
        open = line.trim_start().starts_with('#');
    }
    found
}

fn comment(line: &str) -> Option<&str> {
    let code = line.trim_start();
    if code.starts_with("#!") {
        return None;
    }
    if let Some(comment) = code.strip_prefix('#') {
        return Some(comment);
    }
    if ["summary:", "description:", "description ="]
        .iter()
        .any(|key| code.starts_with(key))
    {
        return code
            .split_once([':', '='])
            .map(|(_, text)| text.trim().trim_matches('"'));
    }
    let mut marks = code.match_indices(" #").map(|(at, _)| code.split_at(at));
    marks.find_map(|(before, rest)| {
        let comment = rest.trim_start().trim_start_matches('#');
        let quotes = before.matches(['"', '\'']).count();
        (quotes % 2 == 0 && comment.starts_with(' ')).then_some(comment)
    })
}
