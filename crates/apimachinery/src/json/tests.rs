//! Tests of the encoder, the number rule and raw objects.

use serde_json::Value;
use serde_json::json;

use super::*;

fn as_doubles(text: &str) -> String {
    let mut value: Value = serde_json::from_str(text).unwrap();
    numbers_as_doubles(&mut value);
    assert_eq!(
        serde_json::from_str::<Value>(&to_go_string(&value)).unwrap(),
        value
    );
    to_go_string(&value)
}

fn raw(text: &str) -> Box<serde_json::value::RawValue> {
    serde_json::value::RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn objects_are_sorted_by_key_bytes() {
    let text = r#"{"b":1,"$patch":2,"a":{"z":[],"é":{},"Z":null}}"#;
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        to_go_string(&value),
        r#"{"$patch":2,"a":{"Z":null,"z":[],"é":{}},"b":1}"#
    );
}

#[test]
fn strings_have_gos_escapes() {
    let text = "c<>&\u{2028}\u{2029}\u{7f}\u{8}\u{c}\n\r\t\u{1}\u{0}é😀/\"\\";
    let expected =
        "\"c\\u003c\\u003e\\u0026\\u2028\\u2029\u{7f}\\b\\f\\n\\r\\t\\u0001\\u0000é😀/\\\"\\\\\"";
    assert_eq!(to_go_string(&Value::from(text)), expected);
    assert_eq!(to_go_string(&json!({ "<": true })), r#"{"\u003c":true}"#);
}

#[test]
fn integers_up_to_two_to_the_53_stay_exact() {
    for text in [
        "0",
        "-1",
        "9007199254740992",
        "-9007199254740992",
        "2147483647",
    ] {
        assert_eq!(as_doubles(text), text);
    }
}

#[test]
fn larger_integers_become_the_shortest_decimal() {
    for (text, expected) in [
        ("9007199254740993", "9007199254740992"),
        ("9223372036854775807", "9223372036854776000"),
        ("-9223372036854775808", "-9223372036854776000"),
        ("-5234777446990041274", "-5234777446990041000"),
        ("18446744073709551615", "18446744073709552000"),
        ("100000000000000000000", "100000000000000000000"),
        ("1000000000000000000000", "1e+21"),
    ] {
        assert_eq!(as_doubles(text), expected);
    }
}

#[test]
fn doubles_print_like_go() {
    for (text, expected) in [
        ("1.0", "1"),
        ("1.5", "1.5"),
        ("-0.0", "-0"),
        ("1e3", "1000"),
        ("0.000001", "0.000001"),
        ("0.00000015", "1.5e-7"),
        ("-2.5e30", "-2.5e+30"),
        ("1e-10", "1e-10"),
    ] {
        assert_eq!(as_doubles(text), expected);
    }
}

#[test]
fn serde_json_features_that_change_bytes_are_off() {
    let value: Value = serde_json::from_str(r#"{"b":1.50,"a":1}"#).unwrap();
    assert_eq!(value.to_string(), r#"{"a":1,"b":1.5}"#);
}

#[test]
fn raw_object_keeps_the_bytes_of_untouched_members() {
    let text = r#"{"b":{"y": 1.0,"x":"\u003c"},"a":9007199254740993,"\u0026":null}"#;
    let mut object = RawObject::parse(text).unwrap();
    assert_eq!(object.to_string(), text);
    assert_eq!(object.get("a").unwrap().get(), "9007199254740993");
    object.set("a", raw("[ ]"));
    object.set("new", to_raw(&json!("<")));
    assert_eq!(
        object.to_string(),
        r#"{"b":{"y": 1.0,"x":"\u003c"},"a":[ ],"\u0026":null,"new":"\u003c"}"#
    );
    assert_eq!(
        object.remove("b").unwrap().get(),
        r#"{"y": 1.0,"x":"\u003c"}"#
    );
    assert!(object.remove("b").is_none());
    assert_eq!(serde_json::to_string(&object).unwrap(), object.to_string());
    assert_eq!(object.to_raw().get(), object.to_string());
}

#[test]
fn an_inner_object_is_edited_during_parsing() {
    let text = r#"{"a":{"x":1,"y": [2]},"b":{"x":3}}"#;
    let object = RawObject::parse_edited(text, "a", |inner| drop(inner.remove("x"))).unwrap();
    assert_eq!(object.to_string(), r#"{"a":{"y":[2]},"b":{"x":3}}"#);
    for text in [r#"{"a":1}"#, r#"{"a":null}"#, r#"{"a":{}}}"#, "[]"] {
        assert!(
            RawObject::parse_edited(text, "a", |_| ()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn last_of_repeated_members_wins() {
    let mut object = RawObject::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap();
    assert_eq!(object.get("a").unwrap().get(), "3");
    object.set("a", raw("4"));
    assert_eq!(object.to_string(), r#"{"a":1,"b":2,"a":4}"#);
    assert_eq!(object.remove("a").unwrap().get(), "4");
    assert_eq!(object.to_string(), r#"{"b":2}"#);
}

#[test]
fn raw_objects_parse_from_objects_only() {
    for text in ["null", "[]", "1", "{", r#"{"a":}"#, ""] {
        assert!(RawObject::parse(text).is_err(), "{text}");
    }
    assert!(RawObject::parse("{}").unwrap().is_empty());
    let error = RawObject::parse("[]").unwrap_err().to_string();
    assert!(error.contains("expected a JSON object"), "{error}");
}
