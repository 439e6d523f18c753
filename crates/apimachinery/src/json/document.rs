//! A JSON document as Go's decoder reads it, beside the bytes that the server sent.

use std::borrow::Cow;
use std::ops::Range;

/// The UTF-8 form of U+FFFD, which Go puts in place of what is no character.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
/// The escape of U+FFFD: as long as that of a surrogate.
const REPLACEMENT_ESCAPE: &[u8; 6] = b"\\ufffd";

/// The text of a JSON document with Go's replacements: each byte that belongs to no UTF-8 character,
/// and each escape of a surrogate without its partner, is U+FFFD.
///
/// API servers store such bytes wherever they keep JSON as it was sent (`fieldsV1`, the data of
/// ControllerRevisions). [`Document::sent`] gives the original bytes of a part.
///
/// Upstream: `json.Unmarshal`.
#[derive(Debug, Clone, Default)]
pub struct Document {
    text: String,
    /// What was sent, where that differs from the text.
    sent: Option<Vec<u8>>,
    /// Where in the text three bytes stand for one that was sent, in order.
    widened: Vec<usize>,
}

impl Document {
    /// Reads a document; copies it only where something is replaced.
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
            widened: Vec::new(),
        }
    }

    fn with_invalid_utf8(sent: Vec<u8>) -> Self {
        let mut text = Vec::with_capacity(sent.len() + 64);
        let mut widened = Vec::new();
        for chunk in sent.utf8_chunks() {
            text.extend_from_slice(chunk.valid().as_bytes());
            for _ in chunk.invalid() {
                widened.push(text.len());
                text.extend_from_slice(REPLACEMENT);
            }
        }
        let surrogates = lone_surrogates(&text);
        Self {
            text: replace_escapes(text, &surrogates),
            sent: Some(sent),
            widened,
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

    /// The bytes that were sent for `part`, a slice of [`Document::text`]. Another text is returned
    /// as it is.
    pub fn sent<'a>(&'a self, part: &'a str) -> Cow<'a, [u8]> {
        let Some((sent, range)) = self.sent.as_ref().zip(self.range_of(part)) else {
            return Cow::Borrowed(part.as_bytes());
        };
        let range = self.sent_offset(range.start)..self.sent_offset(range.end);
        Cow::Borrowed(sent.get(range).unwrap_or_default())
    }

    /// Whether `part`, a slice of [`Document::text`], is what was sent, to the byte.
    pub fn is_exact(&self, part: &str) -> bool {
        *self.sent(part) == *part.as_bytes()
    }

    /// All bytes that were sent, with `replacement` in place of `part`, a slice of
    /// [`Document::text`]; none where it isn't one.
    pub fn splice(&self, part: &str, replacement: &str) -> Option<Vec<u8>> {
        let range = self.range_of(part)?;
        let range = self.sent_offset(range.start)..self.sent_offset(range.end);
        let sent = self.sent.as_deref().unwrap_or(self.text.as_bytes());
        let (before, after) = (sent.get(..range.start)?, sent.get(range.end..)?);
        Some([before, replacement.as_bytes(), after].concat())
    }

    /// Where `part`, a slice of [`Document::text`], lies in it; none where it isn't one.
    pub fn range_of(&self, part: &str) -> Option<Range<usize>> {
        let start = part
            .as_ptr()
            .addr()
            .checked_sub(self.text.as_ptr().addr())?;
        let end = start.checked_add(part.len())?;
        (end <= self.text.len()).then_some(start..end)
    }

    /// The offset in what was sent of an offset in the text.
    fn sent_offset(&self, at: usize) -> usize {
        let before = self.widened.partition_point(|widened| *widened < at);
        at - before * (REPLACEMENT.len() - 1)
    }
}

impl From<String> for Document {
    /// A document of which nothing needs to be replaced but escapes; [`Document::new`] looks for
    /// these.
    fn from(text: String) -> Self {
        Self {
            text,
            sent: None,
            widened: Vec::new(),
        }
    }
}

/// Where escapes of surrogates stand that don't form a pair.
fn lone_surrogates(text: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = text
        .get(at..)
        .and_then(|rest| rest.iter().position(|b| *b == b'\\'))
    {
        at += offset;
        match surrogate(text, at) {
            Some(Surrogate::High) if matches!(surrogate(text, at + 6), Some(Surrogate::Low)) => {
                at += 12;
            }
            Some(_) => {
                found.push(at);
                at += 6;
            }
            // The escaped character must not be taken for the beginning of an escape.
            None => at += 2,
        }
    }
    found
}

enum Surrogate {
    High,
    Low,
}

/// Which half of a pair the escape at this place names, if it names one.
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
    // Only ASCII was put in place of ASCII, so the text is still UTF-8.
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
    fn each_invalid_byte_becomes_a_replacement_character() {
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
    fn parts_give_back_the_bytes_sent() {
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

    #[test]
    fn plain_documents_are_what_was_sent() {
        let document = Document::new(br#"{"a":1}"#.to_vec());
        assert!(document.is_exact(document.text()));
        assert_eq!(
            document.splice(&document.text()[5..6], "22").as_deref(),
            Some(&br#"{"a":22}"#[..])
        );
        assert_eq!(document.splice("elsewhere", ""), None);
    }
}
