//! JSON documents as decoded by Go, with access to the original bytes.

use std::borrow::Cow;
use std::ops::Range;

/// UTF-8 form of U+FFFD, Go's substitute for invalid characters.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
/// Escape of U+FFFD; it has the length of a surrogate's escape.
const REPLACEMENT_ESCAPE: &[u8; 6] = b"\\ufffd";
/// Text bytes between two recorded places; the bound of the search for any other place.
const PLACES_APART: usize = 4 * 1024;

/// The text of a JSON document with Go's replacements: each byte outside of a valid UTF-8
/// character, and each escape of an unpaired surrogate, becomes U+FFFD.
///
/// API servers store such bytes in fields that they keep verbatim (`fieldsV1`, the data of
/// ControllerRevisions). [`Document::sent`] returns the original bytes of a part.
///
/// Upstream: `json.Unmarshal`.
#[derive(Debug, Clone, Default)]
pub struct Document {
    text: String,
    /// Original bytes, if they differ from the text.
    sent: Option<Vec<u8>>,
    /// Places in order; recorded only if a replacement made the text longer than the original.
    places: Vec<Place>,
}

/// One place as offsets into the text and into the original.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    text: usize,
    sent: usize,
}

/// Replaces each byte outside of a valid UTF-8 character with U+FFFD, as Go does.
/// ([`String::from_utf8_lossy`] replaces a truncated character's bytes with a single U+FFFD.)
pub fn replace_invalid_utf8(sent: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(sent) {
        return text.to_owned();
    }
    let invalid: usize = sent.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    let mut text = String::with_capacity(sent.len() + invalid * (REPLACEMENT.len() - 1));
    for chunk in sent.utf8_chunks() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid().iter();
        text.extend(invalid.map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

impl Document {
    /// Creates a document; copies the bytes only if something is replaced.
    pub fn new(sent: Vec<u8>) -> Self {
        let text = match String::from_utf8(sent) {
            Ok(text) => text,
            Err(error) => return Self::with_invalid_utf8(error.into_bytes()),
        };
        let surrogates = lone_surrogates(text.as_bytes());
        if surrogates.is_empty() {
            return Self::from(text);
        }
        let sent = text.into_bytes();
        let text = replace_escapes(sent.clone(), &surrogates);
        Self {
            text,
            sent: Some(sent),
            places: Vec::new(),
        }
    }

    fn with_invalid_utf8(sent: Vec<u8>) -> Self {
        let text = replace_invalid_utf8(&sent).into_bytes();
        let mut places = Vec::with_capacity(text.len() / PLACES_APART + 1);
        let mut place = Place::default();
        while place.text < text.len() {
            places.push(place);
            place = place.advance(&text, &sent, place.text + PLACES_APART);
        }
        let surrogates = lone_surrogates(&text);
        Self {
            text: replace_escapes(text, &surrogates),
            sent: Some(sent),
            places,
        }
    }

    /// The text with the replacements.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text with the replacements.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Returns the original bytes of `part`, a slice of [`Document::text`]. Any other text is
    /// returned unchanged.
    pub fn sent<'a>(&'a self, part: &'a str) -> Cow<'a, [u8]> {
        let Some((sent, range)) = self.sent.as_ref().zip(self.range_of(part)) else {
            return Cow::Borrowed(part.as_bytes());
        };
        let range = self.sent_offset(range.start)..self.sent_offset(range.end);
        Cow::Borrowed(sent.get(range).unwrap_or_default())
    }

    /// Returns true if the original bytes of `part`, a slice of [`Document::text`], equal it.
    pub fn is_exact(&self, part: &str) -> bool {
        *self.sent(part) == *part.as_bytes()
    }

    /// Returns all original bytes with `replacement` instead of `part`, a slice of
    /// [`Document::text`]; `None` if `part` isn't one.
    pub fn splice(&self, part: &str, replacement: &str) -> Option<Vec<u8>> {
        let range = self.range_of(part)?;
        let range = self.sent_offset(range.start)..self.sent_offset(range.end);
        let sent = self.sent.as_deref().unwrap_or(self.text.as_bytes());
        let (before, after) = (sent.get(..range.start)?, sent.get(range.end..)?);
        Some([before, replacement.as_bytes(), after].concat())
    }

    /// Range of `part`, a slice of [`Document::text`]; `None` if it isn't one.
    pub fn range_of(&self, part: &str) -> Option<Range<usize>> {
        let start = part
            .as_ptr()
            .addr()
            .checked_sub(self.text.as_ptr().addr())?;
        let end = start.checked_add(part.len())?;
        (end <= self.text.len()).then_some(start..end)
    }

    /// Offset in the original for an offset in the text.
    fn sent_offset(&self, at: usize) -> usize {
        let before = self.places.partition_point(|place| place.text <= at);
        let place = before.checked_sub(1).and_then(|last| self.places.get(last));
        match (place, &self.sent) {
            (Some(place), Some(sent)) => place.advance(self.text.as_bytes(), sent, at).sent,
            _ => at,
        }
    }
}

impl Place {
    /// Advances to this offset of the text, or just past it.
    fn advance(mut self, text: &[u8], sent: &[u8], to: usize) -> Self {
        let to = to.min(text.len());
        while self.text < to {
            let is_replacement = |bytes: &[u8], at| {
                bytes
                    .get(at..)
                    .is_some_and(|it| it.starts_with(REPLACEMENT))
            };
            // A replacement in the text alone stands for one original byte.
            let is_widened = is_replacement(text, self.text) && !is_replacement(sent, self.sent);
            self.text += if is_widened { REPLACEMENT.len() } else { 1 };
            self.sent += 1;
        }
        self
    }
}

impl From<String> for Document {
    /// Wraps a text that needs no replacement of bytes; [`Document::new`] also replaces escapes of
    /// surrogates.
    fn from(text: String) -> Self {
        Self {
            text,
            sent: None,
            places: Vec::new(),
        }
    }
}

/// Offsets of the escapes of unpaired surrogates.
fn lone_surrogates(text: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    if memchr::memmem::find(text, br"\u").is_none() {
        return found;
    }
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += offset;
        match surrogate(text, at) {
            Some(Surrogate::High) if matches!(surrogate(text, at + 6), Some(Surrogate::Low)) => {
                at += 12;
            }
            Some(_) => {
                found.push(at);
                at += 6;
            }
            // Skip the escaped character, which may be a backslash.
            None => at += 2,
        }
    }
    found
}

enum Surrogate {
    High,
    Low,
}

/// Half of a surrogate pair that the escape at this offset encodes, if any.
fn surrogate(text: &[u8], at: usize) -> Option<Surrogate> {
    let escape = text.get(at..at.checked_add(6)?)?;
    let [b'\\', b'u', b'd' | b'D', half, rest @ ..] = escape else {
        return None;
    };
    match half {
        _ if !rest.iter().all(u8::is_ascii_hexdigit) => None,
        b'8' | b'9' | b'a' | b'b' | b'A' | b'B' => Some(Surrogate::High),
        b'c'..=b'f' | b'C'..=b'F' => Some(Surrogate::Low),
        _ => None,
    }
}

fn replace_escapes(mut text: Vec<u8>, places: &[usize]) -> String {
    for at in places {
        if let Some(escape) = text.get_mut(*at..*at + REPLACEMENT_ESCAPE.len()) {
            escape.copy_from_slice(REPLACEMENT_ESCAPE);
        }
    }
    // ASCII replaced ASCII, so the text is still UTF-8.
    String::from_utf8(text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(sent: &[u8]) -> String {
        Document::new(sent.to_vec()).into_text()
    }

    #[test]
    fn invalid_bytes_become_replacement_characters() {
        assert_eq!(text_of(b"\"a\xffb\""), "\"a\u{fffd}b\"");
        assert_eq!(text_of(b"\"\xe2\x82\""), "\"\u{fffd}\u{fffd}\"");
        assert_eq!(text_of(b"\"\xc0\x80\""), "\"\u{fffd}\u{fffd}\"");
        assert_eq!(text_of(b"\"\xed\xa0\x80\""), "\"\u{fffd}\u{fffd}\u{fffd}\"");
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        for (sent, text) in [
            (r#""\ud800""#, r#""\ufffd""#),
            (r#""\uDC00\uD800""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud800\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\\\ud800x""#, r#""\\\ufffdx""#),
            (r#""\ud80""#, r#""\ud80""#),
        ] {
            assert_eq!(text_of(sent.as_bytes()), text);
        }
    }

    #[test]
    fn parts_return_their_original_bytes() {
        let sent = b"{\"a\":\"\xff\",\"b\":\"x\xfe\\ud800\",\"c\":7}";
        let document = Document::new(sent.to_vec());
        let part = |text: &str| {
            let at = document.text().find(text).expect("the text has it");
            &document.text()[at..at + text.len()]
        };
        let b = part("\"x\u{fffd}\\ufffd\"");
        assert_eq!(&*document.sent(b), b"\"x\xfe\\ud800\"");
        assert!(!document.is_exact(b));
        assert!(document.is_exact(part("7")));
        assert_eq!(&*document.sent(document.text()), sent);
        assert_eq!(
            document.splice(part("7"), "8").as_deref(),
            Some(&b"{\"a\":\"\xff\",\"b\":\"x\xfe\\ud800\",\"c\":8}"[..])
        );
    }

    /// A document, and the original offset of each text offset, computed one by one.
    fn naive(sent: &[u8]) -> (String, Vec<usize>) {
        let (mut text, mut offsets) = (String::new(), Vec::new());
        let mut at = 0;
        for chunk in sent.utf8_chunks() {
            text.push_str(chunk.valid());
            offsets.extend(at..at + chunk.valid().len());
            at += chunk.valid().len();
            for _ in chunk.invalid() {
                text.push(char::REPLACEMENT_CHARACTER);
                offsets.extend([at; REPLACEMENT.len()]);
                at += 1;
            }
        }
        offsets.push(at);
        (text, offsets)
    }

    #[test]
    fn parts_of_random_bytes_return_their_original() {
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % below
        };
        let pieces: [&[u8]; 8] = [
            b"abc",
            b"\xff",
            b"\xef",
            b"\xef\xbf",
            REPLACEMENT,
            "\u{e4}".as_bytes(),
            b"\xf0\x90",
            b"\xbd",
        ];
        for _ in 0..20 {
            let mut sent = Vec::new();
            for _ in 0..40 {
                let piece = pieces[random(pieces.len())];
                sent.extend(piece.repeat(1 + random(3).pow(8)));
            }
            let document = Document::new(sent.clone());
            let (text, offsets) = naive(&sent);
            assert!(document.text() == text);
            for _ in 0..200 {
                let (mut start, mut end) = (random(text.len() + 1), random(text.len() + 1));
                (start, end) = (start.min(end), start.max(end));
                let Some(part) = document.text().get(start..end) else {
                    continue;
                };
                let expected = &sent[offsets[start]..offsets[end]];
                assert!(*document.sent(part) == *expected, "{start}..{end}");
                assert_eq!(document.is_exact(part), part.as_bytes() == expected);
                let spliced = [&sent[..offsets[start]], b"x", &sent[offsets[end]..]].concat();
                assert!(
                    document.splice(part, "x") == Some(spliced),
                    "{start}..{end}"
                );
            }
        }
    }

    #[test]
    fn binary_documents_take_four_times_their_length() {
        for sent in [vec![0xff; 1_000_000], b"a\xff".repeat(500_000)] {
            let length = sent.len();
            let document = Document::new(sent);
            let places = document.places.capacity() * size_of::<Place>();
            let bytes = document.text.capacity() + length + places;
            assert!(bytes < 4 * length + length / 50, "{bytes}");
        }
    }

    #[test]
    fn plain_documents_keep_their_bytes() {
        let document = Document::new(br#"{"a":1}"#.to_vec());
        assert!(document.is_exact(document.text()));
        assert_eq!(
            document.splice(&document.text()[5..6], "22").as_deref(),
            Some(&br#"{"a":22}"#[..])
        );
        assert_eq!(document.splice("elsewhere", ""), None);
    }
}
