//! Decoding of YAML as upstream does: the first document, YAML 1.1, as JSON.

mod error;
mod keys;

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Options};

use crate::go::json::make_whole_integers;

pub use self::keys::{as_warnings, repeated_keys};

/// Maximum number of values that aliases expand to; a few lines can expand to millions.
/// Upstream counts differently and allows several times as many.
const ALIASED_MAX: usize = 100_000;

/// Decodes a document. The last value of a repeated key wins. Ignores the text after the first
/// document.
///
/// # Errors
///
/// The message of Go's YAML reader.
pub fn read(body: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(body);
    let mut read = None;
    let parse = |parser: serde_saphyr::Deserializer<'_, '_>| {
        read = Some(Value::deserialize(parser)?);
        Ok(())
    };
    let parsed = serde_saphyr::with_deserializer_from_str_with_options(&text, options(), parse);
    match (read, parsed) {
        (Some(mut value), _) => {
            make_whole_integers(&mut value);
            Ok(value)
        }
        (None, Ok(())) => Ok(Value::Null),
        (None, Err(err)) => Err(format!("yaml: {}", error::to_go_message(&text, &err))),
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED_MAX },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_follow_yaml_1_1() {
        for (text, value) in [
            ("a: 010", json!({"a": 8})),
            ("a: 0o10", json!({"a": 8})),
            ("a: 08", json!({"a": 8})),
            ("a: 1.0", json!({"a": 1})),
            ("a: -2e3", json!({"a": -2000})),
            ("a: 1.5", json!({"a": 1.5})),
            ("a: yes", json!({"a": true})),
            ("a: 1:30", json!({"a": "1:30"})),
            ("a: [~, null]", json!({"a": [null, null]})),
            ("1: a\ntrue: b", json!({"1": "a", "true": "b"})),
            ("a: 1\na: 2", json!({"a": 2})),
            ("<<: {a: b}\nc: d", json!({"a": "b", "c": "d"})),
            ("# nothing", json!(null)),
            ("", json!(null)),
        ] {
            assert_eq!(read(text.as_bytes()), Ok(value), "{text}");
        }
    }

    #[test]
    fn excessive_aliases_fail() {
        let mut text = "a0: &a0 [x,x]\n".to_owned();
        for i in 1..10 {
            let last = i - 1;
            let line = format!("a{i}: &a{i} [*a{last},*a{last},*a{last},*a{last}]\n");
            text.push_str(&line);
        }
        let error = read(text.as_bytes()).unwrap_err();
        assert_eq!(error, "yaml: document contains excessive aliasing");
    }

    #[test]
    fn only_first_document_is_read() {
        for text in ["a: b\n---\nc: d\n", "--- {a: b}\n--- ["] {
            assert_eq!(read(text.as_bytes()), Ok(json!({"a": "b"})), "{text}");
        }
    }
}
