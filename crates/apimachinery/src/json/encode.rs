//! The encoder: Go's escapes, sorted keys, no whitespace.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::RawValue;

use super::number::go_number;

/// Returns the JSON text that Go's `json.Marshal` gives for a generic value: keys sorted by bytes,
/// no whitespace, Go's escapes and numbers.
///
/// Upstream: `json.Marshal`.
pub fn to_go_string(value: &Value) -> String {
    let mut out = String::new();
    write_go(value, &mut out);
    out
}

/// Returns the text of [`to_go_string`] as a raw value, ready for a [`super::RawObject`] or a
/// request body.
#[expect(clippy::expect_used, reason = "the encoder writes valid JSON")]
pub fn to_raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(to_go_string(value)).expect("the encoder writes valid JSON")
}

/// Appends the text of [`to_go_string`] to `out`.
pub fn write_go(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&go_number(number)),
        Value::String(text) => write_go_str(text, out),
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_go(element, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_go_str(name, out);
                out.push(':');
                write_go(member, out);
            }
            out.push('}');
        }
    }
}

/// Appends `text` as a JSON string with Go's escapes, quotes included.
///
/// Beyond what JSON demands, Go escapes `<`, `>`, `&`, U+2028 and U+2029. Everything else, U+007F
/// and characters outside the basic plane included, is written as UTF-8.
pub fn write_go_str(text: &str, out: &mut String) {
    out.push('"');
    if !may_need_escapes(text) {
        out.push_str(text);
        out.push('"');
        return;
    }
    let mut rest = text;
    while let Some(at) = rest.bytes().position(may_need_escape) {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = tail.chars();
        if let Some(character) = characters.next() {
            write_go_char(character, out);
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// Returns false if [`write_go_str`] copies the text as it is.
pub fn may_need_escapes(text: &str) -> bool {
    // Without early returns, so that the compiler compares many bytes at once.
    text.bytes()
        .fold(false, |found, byte| found | may_need_escape(byte))
}

/// Returns true for the first byte of each character that may need an escape.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "without branches, many bytes are compared at once"
)]
fn may_need_escape(byte: u8) -> bool {
    (byte == b'"')
        | (byte == b'\\')
        | (byte == b'<')
        | (byte == b'>')
        | (byte == b'&')
        | (byte <= 0x1f)
        | (byte == 0xe2)
}

fn write_go_char(character: char, out: &mut String) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
            // Writing to a string can't fail.
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        }
        _ => out.push(character),
    }
}
