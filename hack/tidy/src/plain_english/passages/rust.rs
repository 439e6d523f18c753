//! Prose of a Rust file: comments, documentation, and the strings of messages.

use crate::plain_english::passage::{Kind, Passage};

/// Macros, attributes and methods whose strings are read by people.
const MESSAGES: [&str; 13] = [
    "anyhow",
    "bail",
    "context",
    "debug",
    "ensure",
    "error",
    "expect",
    "info",
    "panic",
    "trace",
    "unreachable",
    "warn",
    "with_context",
];

/// Position in a Rust file.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    /// For each open parenthesis: its strings are messages.
    open: Vec<bool>,
    found: Vec<Passage>,
    /// Last line and marker of the comment that may continue.
    last: Option<(usize, &'a str)>,
    fenced: bool,
}

/// Every passage, in the order of the file.
pub(super) fn passages(text: &str) -> Vec<Passage> {
    let mut reader = Reader {
        text,
        at: 0,
        line: 1,
        open: Vec::new(),
        found: Vec::new(),
        last: None,
        fenced: false,
    };
    while let Some(letter) = reader.rest().chars().next() {
        match letter {
            '/' if reader.rest().starts_with("//") => reader.comment(),
            '"' => reader.string("\"", false),
            'r' if reader.raw_string().is_some() => {
                let end = reader.raw_string().unwrap_or_default();
                reader.skip(end.len());
                reader.string(&end, true);
            }
            '\'' => reader.character(),
            '(' => {
                let inherited = reader.open.last().copied().unwrap_or_default();
                reader.open.push(inherited || reader.opens_message());
                reader.skip(1);
            }
            ')' => {
                reader.open.pop();
                reader.skip(1);
            }
            letter => reader.skip(letter.len_utf8()),
        }
    }
    reader.found
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, bytes: usize) {
        let end = (self.at + bytes).min(self.text.len());
        self.line += self.text[self.at..end].matches('\n').count();
        self.at = end;
    }

    /// The word before an opening parenthesis names a macro, an attribute or a method with a message.
    fn opens_message(&self) -> bool {
        let before = self.text[..self.at].trim_end_matches('!');
        let word = before
            .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
            .next();
        MESSAGES.contains(&word.unwrap_or_default())
    }

    /// The closing mark of a raw string that begins here: `"#` for `r#"`.
    fn raw_string(&self) -> Option<String> {
        let before = self.text[..self.at].chars().next_back();
        if before.is_some_and(|c| (c.is_alphanumeric() && c != 'b') || c == '_') {
            return None;
        }
        let hashes = self.rest()[1..].chars().take_while(|c| *c == '#').count();
        let quoted = self.rest()[1 + hashes..].starts_with('"');
        quoted.then(|| format!("\"{}", "#".repeat(hashes)))
    }

    /// Skips a character literal, or the mark of a lifetime.
    fn character(&mut self) {
        let mut letters = self.rest().char_indices().skip(1);
        let length = match letters.next() {
            Some((_, '\\')) => self
                .rest()
                .get(3..)
                .and_then(|rest| rest.find('\''))
                .map_or(1, |end| end + 4),
            Some((at, letter)) => match letters.next() {
                Some((_, '\'')) => at + letter.len_utf8() + 1,
                _ => 1,
            },
            None => 1,
        };
        self.skip(length);
    }

    /// Takes a string up to its closing mark.
    fn string(&mut self, end: &str, raw: bool) {
        let begin = self.line;
        self.skip(1);
        let body = self.rest();
        let mut length = 0;
        while let Some(found) = body[length..].find([end.chars().next().unwrap_or('"'), '\\']) {
            let place = length + found;
            if body[place..].starts_with(end) {
                length = place;
                break;
            }
            let escaped = !raw && body[place..].starts_with('\\');
            let next = body[place + 1..].chars().next().map_or(0, char::len_utf8);
            length = place + 1 + if escaped { next } else { 0 };
        }
        if self.open.last().copied().unwrap_or_default() {
            let text = body[..length]
                .replace("\\\"", " \"")
                .replace("\\n", "  ")
                .replace('\\', " ");
            self.found.push(Passage::new(Kind::Plain, begin, &text));
        }
        self.skip(length + end.len());
    }

    /// Takes a line comment, which may continue the one on the line before.
    fn comment(&mut self) {
        let line = self.rest().split('\n').next().unwrap_or_default();
        let marker = ["///", "//!", "//"]
            .into_iter()
            .find(|marker| line.starts_with(marker));
        let marker = marker.unwrap_or("//");
        let prose = &line[marker.len()..];
        let continued = self.last == Some((self.line - 1, marker)) && self.stands_alone();
        self.last = Some((self.line, marker));
        if !continued {
            self.fenced = false;
        }
        let fence = prose.trim_start().starts_with("```");
        self.fenced ^= fence;
        let prose = if self.fenced || fence { "" } else { prose };
        if let Some(passage) = self.found.last_mut().filter(|_| continued) {
            passage.text.push('\n');
            passage.text.push_str(prose);
        } else {
            let kind = match marker {
                "//" => Kind::Plain,
                _ => Kind::Doc,
            };
            self.found.push(Passage::new(kind, self.line, prose));
        }
        self.skip(line.len());
    }

    /// Only blanks are before the comment on its line.
    fn stands_alone(&self) -> bool {
        let before = self.text[..self.at].rsplit('\n').next();
        before.unwrap_or_default().trim().is_empty()
    }
}
