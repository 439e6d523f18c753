//! Raw JSON text held in a string. Upstream keeps some members as sent (`fieldsV1`, the data
//! of revisions), and a [`Value`] would lose details of them.
//!
//! A member of the type [`Kind::Raw`](kube_apimachinery::schema::Kind::Raw) holds a string only as
//! such text. A JSON string there is held too.

use std::borrow::Cow;

use serde_json::Value;

use super::raw::compact;
use super::{cursor, syntax_error};

/// The first of the 256 characters that hold bytes outside UTF-8. The bytes of these characters
/// themselves are held the same way.
const FIRST: u32 = 0x10_ff00;

/// Returns the value of raw JSON text: parsed if that loses nothing, else held. An object's `own`
/// field sets are always parsed, because the server encodes them again.
pub(crate) fn read(raw: &[u8], own: bool) -> Value {
    if !raw.starts_with(b"\"")
        && let Ok(value) = serde_json::from_slice::<Value>(raw)
        && (own || kube_apimachinery::json::to_go_string(&value).as_bytes() == &*compact(raw))
    {
        return value;
    }
    Value::String(hold(&compact(raw)))
}

/// Holds bytes in a string; UTF-8 text stays unchanged.
pub(crate) fn hold(bytes: &[u8]) -> String {
    let mut held = String::with_capacity(bytes.len());
    let push_byte = |held: &mut String, byte: u8| {
        held.push(char::from_u32(FIRST + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER));
    };
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if u32::from(character) >= FIRST {
                let mut buffer = [0; 4];
                let bytes = character.encode_utf8(&mut buffer).bytes();
                bytes.for_each(|byte| push_byte(&mut held, byte));
            } else {
                held.push(character);
            }
        }
        for byte in chunk.invalid() {
            push_byte(&mut held, *byte);
        }
    }
    held
}

/// Returns the bytes that a string holds.
pub(crate) fn release(held: &str) -> Cow<'_, [u8]> {
    if !held.contains(is_byte) {
        return Cow::Borrowed(held.as_bytes());
    }
    let mut bytes = Vec::with_capacity(held.len());
    for character in held.chars() {
        if let Some(byte) = u32::from(character).checked_sub(FIRST) {
            bytes.push(u8::try_from(byte).unwrap_or(b'?'));
        } else {
            let mut buffer = [0; 4];
            bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        }
    }
    bytes.into()
}

fn is_byte(character: char) -> bool {
    u32::from(character) >= FIRST
}

/// Returns the JSON text that a string holds. A string without JSON is quoted, because a patch may
/// copy any string to a raw member.
pub(crate) fn json(held: &str) -> Cow<'_, [u8]> {
    let bytes = release(held);
    if syntax_error(&bytes).is_none() {
        return bytes;
    }
    let mut quoted = String::new();
    kube_apimachinery::json::write_go_str(held, &mut quoted);
    quoted.into_bytes().into()
}

/// Returns true if raw text holds a number that overflows a double. Upstream keeps the number,
/// but can't track the owners of the object's fields then.
pub(crate) fn has_huge_number(held: &str) -> bool {
    let bytes = release(held);
    cursor::numbers(&bytes).any(cursor::is_huge)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_survive_in_a_string() {
        for bytes in [
            &b"{\"a\":1}"[..],
            b"\xff\xfe",
            b"a\xe2\x82z",
            "\u{10ff00}\u{10ffff}\u{fffd}".as_bytes(),
            b"",
        ] {
            assert_eq!(&*release(&hold(bytes)), bytes);
        }
        assert_eq!(hold(b"{\"a\":1}"), "{\"a\":1}");
    }

    #[test]
    fn text_is_held_where_parsing_loses_details() {
        assert_eq!(read(b"{ \"a\": {} }", false), json!({"a": {}}));
        for (raw, text) in [
            (&b"{\"b\":1, \"a\":2}"[..], &b"{\"b\":1,\"a\":2}"[..]),
            (b"{\"a\":1.50}", b"{\"a\":1.50}"),
            (b"{\"a\":\"\xff\"}", b"{\"a\":\"\xff\"}"),
            (b"{\"a\":\"\\ud800\"}", b"{\"a\":\"\\ud800\"}"),
            (b"\"text\"", b"\"text\""),
            (b"1e400", b"1e400"),
        ] {
            let Value::String(held) = read(raw, false) else {
                panic!("not held: {}", String::from_utf8_lossy(raw));
            };
            assert_eq!(&*json(&held), text);
        }
        assert_eq!(read(b"{\"b\":1, \"a\":2}", true), json!({"a": 2, "b": 1}));
    }

    #[test]
    fn strings_without_json_are_quoted() {
        assert_eq!(&*json("web \u{e4}"), "\"web \u{e4}\"".as_bytes());
    }

    #[test]
    fn huge_numbers_are_found_outside_strings() {
        assert!(has_huge_number("{\"a\":[-1e400]}"));
        assert!(!has_huge_number("{\"1e400\":\"1e400\",\"b\":1e308}"));
    }
}
