//! JSON syntax checks with the messages of Go's parser.

pub(crate) mod cursor;
pub(crate) mod held;
pub(crate) mod raw;
pub(crate) mod read;

use memchr::memchr2;
use serde_json::{Number, Value};

/// Returns the parser's error, or `None` if the text is one JSON value.
pub(crate) fn syntax_error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { text, at: 0 };
    let found = scanner.value().and_then(|()| scanner.end());
    found.err()
}

/// Returns Go's name for the type of a JSON value, from its text.
pub(crate) fn type_name(text: &str) -> &'static str {
    match text.trim_start().bytes().next() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "bool",
        Some(b'n') => "null",
        _ => "number",
    }
}

/// Maximum nesting depth of values.
const MAX_DEPTH: usize = 10_000;

/// Converts whole floats to the integers as which Go reads them once it has written them: without a
/// point. Larger integers, which Go reads as floats, are rounded.
pub fn make_whole_integers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(make_whole_integers),
        Value::Object(members) => members.values_mut().for_each(make_whole_integers),
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| !number.is_i64());
            // Go writes larger numbers with an exponent.
            let written = float
                .filter(|float| float.abs() < 1e21)
                .map(|float| float.to_string());
            let (Some(float), Some(written)) = (float, written) else {
                return;
            };
            if let Ok(whole) = written.parse::<i64>() {
                *number = Number::from(whole);
            } else if let Ok(rounded) = written.parse::<u64>() {
                *number = Number::from(rounded);
            } else if let Some(rounded) = Number::from_f64(float) {
                *number = rounded;
            }
        }
        _ => {}
    }
}

/// Returns the number of bytes up to the first one that isn't just a part of a string.
fn plain_len(rest: &[u8]) -> usize {
    let end = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    let is_control = |byte: u8| byte < 0x20;
    let plain = &rest[..end];
    // Without early returns, so that the compiler compares many bytes at once.
    let has_control = plain
        .iter()
        .fold(false, |found, byte| found | is_control(*byte));
    let control = has_control.then(|| plain.iter().position(|byte| is_control(*byte)));
    control.flatten().unwrap_or(end)
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

type Scanned = Result<(), String>;

impl Scanner<'_> {
    /// Reads the next byte that isn't white space.
    fn next(&mut self) -> Result<u8, String> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.raw()
    }

    /// Reads the next byte.
    fn raw(&mut self) -> Result<u8, String> {
        let byte = self.text.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| "unexpected end of JSON input".to_owned())
    }

    fn back(&mut self) {
        self.at -= 1;
    }

    fn end(&mut self) -> Scanned {
        match self.next() {
            Ok(byte) => Err(invalid(byte, "after top-level value")),
            Err(_) => Ok(()),
        }
    }

    /// Checks one value. Keeps the open brackets in a list, not on the stack.
    fn value(&mut self) -> Scanned {
        let mut open: Vec<u8> = Vec::new();
        loop {
            let byte = self.next()?;
            let is_empty = match byte {
                b'{' | b'[' => {
                    if open.len() >= MAX_DEPTH {
                        return Err("exceeded max depth".to_owned());
                    }
                    open.push(byte);
                    self.opened(byte)?
                }
                other => {
                    self.scalar(other)?;
                    true
                }
            };
            if is_empty && self.closes(&mut open, matches!(byte, b'{' | b'['))? {
                return Ok(());
            }
        }
    }

    /// Reads on after an opening bracket, in an object up to its first value. Returns true if the
    /// brackets are empty.
    fn opened(&mut self, byte: u8) -> Result<bool, String> {
        let next = self.next()?;
        match (byte, next) {
            (b'{', b'}') | (b'[', b']') => return Ok(true),
            (b'{', next) => self.key(next)?,
            _ => self.back(),
        }
        Ok(false)
    }

    /// Reads on after a value, up to the next one. Returns true if there is none. `is_open` marks
    /// an empty object or array that is still in the list.
    fn closes(&mut self, open: &mut Vec<u8>, is_open: bool) -> Result<bool, String> {
        if is_open {
            open.pop();
        }
        while let Some(innermost) = open.last() {
            let next = self.next()?;
            match (innermost, next) {
                (b'{', b'}') | (b'[', b']') => drop(open.pop()),
                (b'{', b',') => {
                    let next = self.next()?;
                    self.key(next)?;
                    return Ok(false);
                }
                (_, b',') => return Ok(false),
                (b'{', other) => return Err(invalid(other, "after object key:value pair")),
                (_, other) => return Err(invalid(other, "after array element")),
            }
        }
        Ok(true)
    }

    /// Reads the rest of an object's key after this first byte, and the colon.
    fn key(&mut self, byte: u8) -> Scanned {
        if byte != b'"' {
            return Err(invalid(byte, "looking for beginning of object key string"));
        }
        self.string()?;
        match self.next()? {
            b':' => Ok(()),
            other => Err(invalid(other, "after object key")),
        }
    }

    /// Reads the rest of a scalar after this first byte.
    fn scalar(&mut self, byte: u8) -> Scanned {
        match byte {
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' => match self.raw()? {
                digit @ b'0'..=b'9' => self.number(digit),
                other => Err(invalid(other, "in numeric literal")),
            },
            digit @ b'0'..=b'9' => self.number(digit),
            other => Err(invalid(other, "looking for beginning of value")),
        }
    }

    fn string(&mut self) -> Scanned {
        loop {
            self.at += plain_len(self.text.get(self.at..).unwrap_or_default());
            match self.raw()? {
                b'"' => return Ok(()),
                b'\\' => self.escape()?,
                control @ 0..0x20 => return Err(invalid(control, "in string literal")),
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Scanned {
        match self.raw()? {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    let digit = self.raw()?;
                    if !digit.is_ascii_hexdigit() {
                        return Err(invalid(digit, "in \\u hexadecimal character escape"));
                    }
                }
                Ok(())
            }
            other => Err(invalid(other, "in string escape code")),
        }
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for expected in word.bytes().skip(1) {
            let found = self.raw()?;
            if found != expected {
                let expected = char::from(expected);
                let context = format!("in literal {word} (expecting '{expected}')");
                return Err(invalid(found, &context));
            }
        }
        Ok(())
    }

    /// Reads the rest of a number, which may end with the text.
    fn number(&mut self, first: u8) -> Scanned {
        if first != b'0' {
            self.digits();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            let digit = self.raw()?;
            if !digit.is_ascii_digit() {
                return Err(invalid(digit, "after decimal point in numeric literal"));
            }
            self.digits();
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            let mut digit = self.raw()?;
            if matches!(digit, b'+' | b'-') {
                digit = self.raw()?;
            }
            if !digit.is_ascii_digit() {
                return Err(invalid(digit, "in exponent of numeric literal"));
            }
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }
}

fn invalid(byte: u8, context: &str) -> String {
    format!("invalid character {} {context}", quoted(byte))
}

/// Quotes a byte as Go does.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => "'\\\\'".to_owned(),
        7 => "'\\a'".to_owned(),
        8 => "'\\b'".to_owned(),
        9 => "'\\t'".to_owned(),
        10 => "'\\n'".to_owned(),
        11 => "'\\v'".to_owned(),
        12 => "'\\f'".to_owned(),
        13 => "'\\r'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..0xa1 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_match_go() {
        for (text, message) in [
            ("", "unexpected end of JSON input"),
            ("{\"a\":", "unexpected end of JSON input"),
            ("nul", "unexpected end of JSON input"),
            (
                "nope",
                "invalid character 'o' in literal null (expecting 'u')",
            ),
            (
                "{a",
                "invalid character 'a' looking for beginning of object key string",
            ),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            (
                "{\"a\":1 2}",
                "invalid character '2' after object key:value pair",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            (
                "{\"a\":{}]",
                "invalid character ']' after object key:value pair",
            ),
            ("[{}}", "invalid character '}' after array element"),
            (
                "{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            ("[", "unexpected end of JSON input"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("-a", "invalid character 'a' in numeric literal"),
            ("1.", "unexpected end of JSON input"),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            (
                "'a'",
                "invalid character '\\'' looking for beginning of value",
            ),
            (
                "\u{cf}",
                "invalid character 'Ã' looking for beginning of value",
            ),
        ] {
            assert_eq!(
                syntax_error(text.as_bytes()).as_deref(),
                Some(message),
                "{text}"
            );
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(
            syntax_error(deep.as_bytes()).as_deref(),
            Some("exceeded max depth")
        );
        for text in [
            "{}",
            "[[], {}]",
            " [1, -0.5e+3, {\"a\": [null, true]}] ",
            "\"\\u00e4\"",
        ] {
            assert_eq!(syntax_error(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn whole_floats_become_the_integers_that_go_writes() {
        let read = |text: &str| {
            let mut value = serde_json::from_str(text).unwrap();
            make_whole_integers(&mut value);
            value
        };
        assert_eq!(
            read(r#"{"a": [3.0, -2e3, 2.5, 1234567890123456768.0], "b": {"c": 3}}"#),
            serde_json::json!({"a": [3, -2000, 2.5, 1_234_567_890_123_456_800_i64], "b": {"c": 3}})
        );
        for large in ["2e19", "1e300"] {
            assert!(read(large).is_f64(), "{large}");
        }
        for (large, rounded) in [
            ("1e19", "10000000000000000000"),
            ("9223372036854775808", "9223372036854776000"),
            ("18446744073709551615", "1.8446744073709552e+19"),
        ] {
            assert_eq!(read(large).to_string(), rounded);
        }
    }
}
