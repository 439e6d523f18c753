//! A passage of prose, and its words.

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
    pub(super) line: usize,
    pub(super) text: String,
}

impl Passage {
    pub(super) fn new(kind: Kind, line: usize, text: &str) -> Self {
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

/// A word or a mark of punctuation, in lower case, with its place in the passage.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) at: usize,
}

impl Word {
    pub(crate) fn is_mark(&self) -> bool {
        !self.text.starts_with(char::is_alphanumeric)
    }

    pub(crate) fn ends_sentence(&self) -> bool {
        [".", "!", "?", "|", "-", "*", "#"].contains(&self.text.as_str())
    }
}
