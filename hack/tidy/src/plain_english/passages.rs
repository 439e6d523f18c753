//! Prose of a file: comments, documentation, messages, test names, Markdown.

use super::Word;
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

/// Form of a passage, which decides the rules for its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A comment, a message or a paragraph.
    Plain,
    /// A documentation comment.
    Doc,
    /// A Markdown heading.
    Heading,
    /// The name of a test.
    TestName,
}

/// Consecutive lines of prose.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) kind: Kind,
    line: usize,
    text: String,
}

impl Passage {
    fn new(kind: Kind, line: usize, text: &str) -> Self {
        Self {
            kind,
            line,
            text: text.to_owned(),
        }
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Line number in the file of a byte of the text.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        self.line + self.text[..at.min(self.text.len())].matches('\n').count()
    }

    /// Words and marks outside quotes and link targets.
    pub(crate) fn words(&self) -> Vec<Word> {
        let text = without_quotes(&self.text);
        let mut words: Vec<Word> = Vec::new();
        let mut open = false;
        let letters: Vec<(usize, char)> = text.char_indices().collect();
        for (index, &(at, letter)) in letters.iter().enumerate() {
            let inner = matches!(letter, '\'' | '’' | '-')
                && open
                && letters
                    .get(index + 1)
                    .is_some_and(|(_, next)| next.is_alphanumeric());
            if letter.is_alphanumeric() || inner {
                let letter = if letter == '’' { '\'' } else { letter };
                let lower = letter.to_lowercase();
                match words.last_mut().filter(|_| open) {
                    Some(word) => word.text.extend(lower),
                    None => words.push(Word {
                        text: lower.collect(),
                        at,
                    }),
                }
                open = true;
            } else {
                open = false;
                if !letter.is_whitespace() && !matches!(letter, '\'' | '’') {
                    words.push(Word {
                        text: letter.to_string(),
                        at,
                    });
                }
            }
        }
        words
    }
}

/// Replaces quoted texts, placeholders and link targets by blanks of the same length.
fn without_quotes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let quoted = match letter {
            '`' => closing(rest, rest.chars().take_while(|c| *c == '`').count()),
            '"' => rest[1..].find('"').map(|end| end + 2),
            '“' => rest.find('”').map(|end| end + '”'.len_utf8()),
            ']' if rest.starts_with("](") => rest.find(')').map(|end| end + 1),
            '{' => rest.find('}').map(|end| end + 1),
            _ => None,
        };
        let taken = quoted.unwrap_or(letter.len_utf8());
        if quoted.is_some() {
            // A quote is a noun: a word that no rule knows.
            let noun = rest[..taken].bytes().enumerate();
            kept.extend(noun.map(|(at, byte)| match byte {
                b'\n' => '\n',
                _ if at == 0 && letter != ']' => 'q',
                _ => ' ',
            }));
        } else {
            kept.push(letter);
        }
        rest = &rest[taken..];
    }
    kept
}

/// The end of a code span that begins with `ticks` backticks.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let fence = "`".repeat(ticks);
    text[ticks..].find(&fence).map(|end| end + 2 * ticks)
}

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
