//! Separation of a list's items from the JSON around them, piece by piece.

use bytes::Bytes;

#[cfg(test)]
mod tests;

/// Splits the JSON of a list while it arrives: into its items, the elements of the top-level array
/// `items`, and the envelope, the same object with an empty array.
///
/// Follows brackets and strings only. The decoders of the items and of the envelope find all other
/// mistakes.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// The current piece.
    piece: Bytes,
    /// Offset of its first unread byte.
    at: usize,
    envelope: Vec<u8>,
    /// The beginning of an item.
    item: Vec<u8>,
    place: Place,
    /// Open brackets: of the envelope or, inside of an item, of the item.
    depth: usize,
    string: Option<StringPart>,
}

/// Position in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringPart {
    Text,
    /// After a backslash.
    Escape,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Outside of the array.
    #[default]
    Envelope,
    /// Before, between or after items.
    Gap,
    /// Inside of an item.
    Item,
}

/// Something at which the place can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// A bracket that opens an array.
    ArrayBegins,
    /// The last byte of a bracketed value or of a string.
    ValueEnds,
    Other,
}

impl Items {
    /// Adds the next piece, after [`Items::next`] has returned none for the last one.
    pub(super) fn push(&mut self, piece: Bytes) {
        self.piece = piece;
        self.at = 0;
    }

    /// Returns the next item that ends in this piece.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let piece = self.piece.clone();
        loop {
            let rest = piece.get(self.at..).filter(|rest| !rest.is_empty())?;
            let (length, next) = match self.place {
                Place::Envelope => self.read_envelope(rest),
                Place::Gap => self.read_gap(rest),
                Place::Item => self.read_item(rest),
            };
            let read = rest.get(..length).unwrap_or_default();
            self.at += length;
            match self.place {
                Place::Envelope => self.envelope.extend_from_slice(read),
                Place::Gap => {}
                Place::Item => self.item.extend_from_slice(read),
            }
            let was = std::mem::replace(&mut self.place, next);
            if (was, next) == (Place::Item, Place::Gap) {
                return Some(std::mem::take(&mut self.item));
            }
        }
    }

    /// Returns the text around the items. If an item has no end, neither has the envelope.
    pub(super) fn into_envelope(self) -> Vec<u8> {
        self.envelope
    }

    /// Reads up to the array, or the whole piece.
    fn read_envelope(&mut self, rest: &[u8]) -> (usize, Place) {
        let mut length = 0;
        while length < rest.len() {
            let (step, token) = self.step(rest.get(length..).unwrap_or_default());
            length += step;
            if token == Token::ArrayBegins
                && self.depth == 2
                && self.ends_with_items(rest.get(..length).unwrap_or_default())
            {
                self.depth = 0;
                return (length, Place::Gap);
            }
        }
        (length, Place::Envelope)
    }

    /// Returns true if the envelope and this text end with `"items":[`, white space aside.
    fn ends_with_items(&self, text: &[u8]) -> bool {
        let before = self.envelope.iter().chain(text);
        let mut before = before.copied().rev().skip(1).peekable();
        for part in [&b":"[..], b"\"smeti\""] {
            while before.next_if(u8::is_ascii_whitespace).is_some() {}
            if !part.iter().all(|byte| before.next() == Some(*byte)) {
                return false;
            }
        }
        true
    }

    /// Skips commas and white space up to an item, or over the end of the array.
    fn read_gap(&mut self, rest: &[u8]) -> (usize, Place) {
        let is_gap = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let length = rest.iter().take_while(|byte| is_gap(byte)).count();
        match rest.get(length) {
            None => (length, Place::Gap),
            Some(b']') => {
                self.envelope.push(b']');
                self.depth = 1;
                (length + 1, Place::Envelope)
            }
            Some(_) => (length, Place::Item),
        }
    }

    /// Reads up to the end of the item, or the whole piece.
    fn read_item(&mut self, rest: &[u8]) -> (usize, Place) {
        let mut length = 0;
        while let Some(next) = rest.get(length) {
            let has_begun = length > 0 || !self.item.is_empty();
            let is_literal = has_begun && self.depth == 0 && self.string.is_none();
            // The byte after a literal ends it.
            if is_literal && (matches!(next, b',' | b']' | b'}') || next.is_ascii_whitespace()) {
                return (length, Place::Gap);
            }
            let (step, token) = self.step(rest.get(length..).unwrap_or_default());
            length += step;
            if token == Token::ValueEnds && self.depth == 0 {
                return (length, Place::Gap);
            }
        }
        (length, Place::Item)
    }

    /// Reads a token that isn't empty; returns its length.
    fn step(&mut self, rest: &[u8]) -> (usize, Token) {
        match (self.string, rest.first()) {
            (Some(StringPart::Text), _) => self.step_in_string(rest),
            (Some(StringPart::Escape), _) | (None, Some(b'"')) => {
                self.string = Some(StringPart::Text);
                (1, Token::Other)
            }
            (None, Some(b'[')) => {
                self.depth += 1;
                (1, Token::ArrayBegins)
            }
            (None, Some(b'{')) => {
                self.depth += 1;
                (1, Token::Other)
            }
            (None, Some(b']' | b'}')) => {
                self.depth = self.depth.saturating_sub(1);
                (1, Token::ValueEnds)
            }
            // A literal at the level of the items ends at any byte.
            (None, _) if self.depth == 0 => (1, Token::Other),
            (None, _) => {
                let is_plain = |byte: &u8| !matches!(byte, b'"' | b'[' | b'{' | b']' | b'}');
                (
                    rest.iter().take_while(|byte| is_plain(byte)).count(),
                    Token::Other,
                )
            }
        }
    }

    fn step_in_string(&mut self, rest: &[u8]) -> (usize, Token) {
        let Some(end) = memchr::memchr2(b'"', b'\\', rest) else {
            return (rest.len(), Token::Other);
        };
        if rest.get(end) == Some(&b'"') {
            self.string = None;
            (end + 1, Token::ValueEnds)
        } else {
            self.string = Some(StringPart::Escape);
            (end + 1, Token::Other)
        }
    }
}
