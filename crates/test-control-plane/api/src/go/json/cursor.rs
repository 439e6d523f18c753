//! A cursor over JSON text with checked syntax.

use std::borrow::Cow;
use std::fmt::Write as _;

use kube_apimachinery::json::replace_invalid_utf8;
use memchr::{memchr, memchr2};

/// A position in JSON text. On invalid JSON, reads return arbitrary values and the walk ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the start of a text.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the offset of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns the next byte that isn't white space without consuming it; 0 at the end.
    pub(crate) fn peek(&mut self) -> u8 {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Consumes the byte if it is next.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == byte && self.at < self.text.len();
        if is_next {
            self.at += 1;
        }
        is_next
    }

    /// Moves to the first element of a list or the first member of an object. Returns false if
    /// there is none.
    pub(crate) fn open(&mut self, opening: u8, closing: u8) -> bool {
        self.eat(opening) && !self.eat(closing)
    }

    /// Moves to the next element or member. Returns false if there is none.
    pub(crate) fn next(&mut self, closing: u8) -> bool {
        if self.eat(b',') {
            return true;
        }
        self.eat(closing);
        false
    }

    /// Reads the name of a member and moves to its value.
    pub(crate) fn name(&mut self) -> Cow<'a, str> {
        let inner = unquoted(self.raw());
        let is_plain = memchr(b'\\', inner).is_none();
        let name = match std::str::from_utf8(inner) {
            Ok(name) if is_plain => Cow::Borrowed(name),
            _ => Cow::Owned(unescape(inner)),
        };
        self.eat(b':');
        name
    }

    /// Reads a string as Go decodes it: invalid UTF-8 and lone surrogates become U+FFFD.
    pub(crate) fn string(&mut self) -> String {
        unescape(unquoted(self.raw()))
    }

    /// Returns the bytes of the next value, of any depth.
    pub(crate) fn raw(&mut self) -> &'a [u8] {
        self.peek();
        let start = self.at;
        let mut open = 0_usize;
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'"' => self.skip_string(),
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    if open == 0 {
                        break;
                    }
                    open -= 1;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => {
                    if open == 0 {
                        break;
                    }
                    self.at += 1;
                    continue;
                }
                _ => self.skip_word(),
            }
            if open == 0 {
                break;
            }
        }
        &self.text[start..self.at]
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(rest) = self.text.get(self.at..) {
            let Some(special) = memchr2(b'"', b'\\', rest) else {
                break;
            };
            if rest[special] == b'"' {
                self.at += special + 1;
                return;
            }
            self.at += special + 2;
        }
        self.at = self.text.len();
    }

    /// Skips a number or a literal.
    fn skip_word(&mut self) {
        self.at += 1;
        let is_end = |byte: &u8| b",:{}[]\" \t\r\n".contains(byte);
        while self.text.get(self.at).is_some_and(|byte| !is_end(byte)) {
            self.at += 1;
        }
    }
}

/// Returns all numbers outside strings, at any depth.
pub(crate) fn numbers(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut cursor = Cursor::new(text);
    std::iter::from_fn(move || {
        while let Some(byte) = text.get(cursor.at) {
            match byte {
                b'"' => cursor.skip_string(),
                b'-' | b'0'..=b'9' => {
                    let start = cursor.at;
                    cursor.skip_word();
                    return Some(&text[start..cursor.at]);
                }
                _ => cursor.at += 1,
            }
        }
        None
    })
}

/// Returns true if the number overflows a double.
pub(crate) fn is_huge(number: &[u8]) -> bool {
    let text = std::str::from_utf8(number).unwrap_or_default();
    text.parse::<f64>().is_ok_and(f64::is_infinite)
}

fn unquoted(raw: &[u8]) -> &[u8] {
    let inner = raw.strip_prefix(b"\"").unwrap_or(raw);
    inner.strip_suffix(b"\"").unwrap_or(inner)
}

fn unescape(inner: &[u8]) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr(b'\\', rest) {
        push_plain(&mut text, &rest[..at]);
        rest = push_escape(&mut text, &rest[at + 1..]);
    }
    push_plain(&mut text, rest);
    text
}

fn push_plain(text: &mut String, plain: &[u8]) {
    match std::str::from_utf8(plain) {
        Ok(plain) => text.push_str(plain),
        Err(_) => text.push_str(&replace_invalid_utf8(plain)),
    }
}

/// Appends the decoded escape after a backslash and returns the rest of the text.
fn push_escape<'a>(text: &mut String, escape: &'a [u8]) -> &'a [u8] {
    let Some((letter, rest)) = escape.split_first() else {
        return escape;
    };
    let character = match letter {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return push_unicode(text, rest),
        other => char::from(*other),
    };
    text.push(character);
    rest
}

fn push_unicode<'a>(text: &mut String, digits: &'a [u8]) -> &'a [u8] {
    let Some((unit, rest)) = unit(digits) else {
        return digits;
    };
    let low = rest.strip_prefix(b"\\u").and_then(self::unit);
    let pair = low.and_then(|(low, rest)| {
        let decoded = char::decode_utf16([unit, low]).next()?.ok()?;
        (u32::from(decoded) > 0xffff).then_some((decoded, rest))
    });
    if let Some((character, rest)) = pair {
        text.push(character);
        return rest;
    }
    text.push(char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER));
    rest
}

fn unit(digits: &[u8]) -> Option<(u16, &[u8])> {
    let (hex, rest) = digits.split_at_checked(4)?;
    let hex = std::str::from_utf8(hex).ok()?;
    Some((u16::from_str_radix(hex, 16).ok()?, rest))
}

/// Appends `[index]` to the path.
pub(crate) fn push_index(path: &mut String, index: usize) {
    // Writing to a string can't fail.
    let _ = write!(path, "[{index}]");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_decoded_as_in_go() {
        for (raw, decoded) in [
            (&b"\"a\\n\\u00e4\\/\""[..], "a\n\u{e4}/"),
            (b"\"a\xffb\"", "a\u{fffd}b"),
            (b"\"\xe2\x82z\"", "\u{fffd}\u{fffd}z"),
            (b"\"\xed\xa0\x80\"", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\"a\\ud800b\"", "a\u{fffd}b"),
            (b"\"\\ud83d\\ude00\"", "\u{1f600}"),
            (b"\"\\ud800\\ud83d\\ude00\"", "\u{fffd}\u{1f600}"),
            (b"\"\\ude00\\ud83d\"", "\u{fffd}\u{fffd}"),
            (b"\"\\ud800\\u0041\"", "\u{fffd}A"),
        ] {
            assert_eq!(Cursor::new(raw).string(), decoded);
        }
    }

    #[test]
    fn raw_returns_exactly_one_value() {
        for (text, raw) in [
            ("[1,{\"a\":\"]\\\"\"}] ,2", "[1,{\"a\":\"]\\\"\"}]"),
            (" -1.5e3}", "-1.5e3"),
            ("null,", "null"),
            ("\"a,b\" :", "\"a,b\""),
            ("", ""),
            ("]", ""),
            ("[[", "[["),
        ] {
            let mut cursor = Cursor::new(text.as_bytes());
            assert_eq!(cursor.raw(), raw.as_bytes(), "{text}");
        }
    }

    #[test]
    fn numbers_in_strings_are_ignored() {
        let text = br#"{"a1":[1,-2.5e9,"3 4",{"b":1e400}],"c":true}"#;
        let found: Vec<&[u8]> = numbers(text).collect();
        assert_eq!(found, [&b"1"[..], b"-2.5e9", b"1e400"]);
    }
}
