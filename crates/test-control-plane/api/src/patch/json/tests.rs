//! Tests of JSON patches: what each operation does, and the limits.

use serde_json::Value;

use super::*;

const OBJECT: &str = r#"{"z":{"b":1,"a":[1,2]},"e":null,"text":"\u003c","list":["x",null,"y"]}"#;

fn run(operations: &str) -> Result<String, u16> {
    let patch = JsonPatch::parse(operations.as_bytes(), FieldValidation::Strict);
    let patched = patch.and_then(|patch| patch.apply(OBJECT.as_bytes()));
    patched
        .map(|text| String::from_utf8(text).unwrap())
        .map_err(|error| error.code)
}

fn run_one(operation: &str) -> Result<String, u16> {
    run(&format!("[{operation}]"))
}

#[test]
fn untouched_parts_keep_their_text() {
    let patched = run_one(r#"{"op":"add","path":"/list/-","value": {"b": 1.50, "a": "<"}}"#);
    let expected = r#"{"e":null,"list":["x",null,"y",{"b":1.50,"a":"\u003c"}],"text":"\u003c","z":{"b":1,"a":[1,2]}}"#;
    assert_eq!(patched.unwrap(), expected);
}

#[test]
fn missing_members_equal_null_and_can_be_replaced_and_copied() {
    for (operation, added) in [
        (r#"{"op":"test","path":"/none","value":null}"#, None),
        (r#"{"op":"test","path":"/e","value":null}"#, None),
        (r#"{"op":"test","path":"/e"}"#, None),
        (r#"{"op":"replace","path":"/none","value":1}"#, Some("1")),
        (
            r#"{"op":"copy","from":"/other","path":"/none"}"#,
            Some("null"),
        ),
        (r#"{"op":"add","path":"/none"}"#, Some("null")),
    ] {
        let patched: Value = serde_json::from_str(&run_one(operation).unwrap()).unwrap();
        let added = added.map(|text| serde_json::from_str(text).unwrap());
        assert_eq!(patched.get("none").cloned(), added, "{operation}");
    }
    for operation in [
        r#"{"op":"remove","path":"/none"}"#,
        r#"{"op":"move","from":"/none","path":"/e"}"#,
        r#"{"op":"test","path":"/none/none","value":null}"#,
        r#"{"op":"test","path":"/none","value":{}}"#,
    ] {
        assert_eq!(run_one(operation), Err(422), "{operation}");
    }
}

#[test]
fn indices_count_from_either_end() {
    for (path, list) in [
        ("/list/0", r#"["n","x",null,"y"]"#),
        ("/list/3", r#"["x",null,"y","n"]"#),
        ("/list/-", r#"["x",null,"y","n"]"#),
        ("/list/-1", r#"["x",null,"y","n"]"#),
        ("/list/-4", r#"["n","x",null,"y"]"#),
        ("/list/+01", r#"["x","n",null,"y"]"#),
    ] {
        let patched = run_one(&format!(r#"{{"op":"add","path":"{path}","value":"n"}}"#));
        assert!(patched.unwrap().contains(list), "{path}");
    }
    for path in ["/list/4", "/list/-5", "/list/x", "/list/", "/list/1_0"] {
        let added = run_one(&format!(r#"{{"op":"add","path":"{path}","value":"n"}}"#));
        assert_eq!(added, Err(422), "{path}");
    }
    for path in ["/list/3", "/list/-", "/list/-4"] {
        let replaced = run_one(&format!(
            r#"{{"op":"replace","path":"{path}","value":"n"}}"#
        ));
        assert_eq!(replaced, Err(422), "{path}");
    }
}

#[test]
fn tests_compare_the_text_of_scalars() {
    for (path, value, passes) in [
        ("/text", r#""\u003c""#, true),
        ("/text", r#""<""#, false),
        ("/z/b", "1", true),
        ("/z/b", "1.0", false),
        ("/z", r#"{ "a" : [ 1, 2 ], "b" : 1 }"#, true),
        ("/z", r#"{"a":[1],"b":1}"#, false),
        ("/z", r#"{"a":[1,2],"b":1,"c":null}"#, false),
        ("/z/a", "[2,1]", false),
        ("/z/a/-1", "2", true),
        // Upstream's handler panics on a null in a list.
        ("/list", r#"["x",null,"y"]"#, false),
        ("", r#"{"a":1}"#, false),
        ("", "null", false),
    ] {
        let tested = run_one(&format!(
            r#"{{"op":"test","path":"{path}","value":{value}}}"#
        ));
        assert_eq!(tested.is_ok(), passes, "{path} {value}");
    }
}

#[test]
fn null_of_an_operation_has_no_text() {
    let null = r#"{"op":"add","path":"/n","value":null}"#;
    let copy = r#"{"op":"copy","from":"/n","path":"/m"}"#;
    for (operations, passes) in [
        (
            vec![null, r#"{"op":"test","path":"/n","value":null}"#],
            true,
        ),
        (vec![null, r#"{"op":"test","path":"/n"}"#], false),
        (
            vec![null, copy, r#"{"op":"test","path":"/m","value":null}"#],
            false,
        ),
        (
            vec![null, copy, r#"{"op":"test","path":"/m","value":{}}"#],
            true,
        ),
        (
            vec![null, copy, r#"{"op":"test","path":"/m/x","value":null}"#],
            true,
        ),
        // Upstream's handler panics on these.
        (
            vec![null, copy, r#"{"op":"add","path":"/m/x","value":1}"#],
            false,
        ),
        (vec![null, r#"{"op":"add","path":"/n/x","value":1}"#], false),
    ] {
        let patched = run(&format!("[{}]", operations.join(",")));
        assert_eq!(patched.is_ok(), passes, "{operations:?}");
    }
}

#[test]
fn whole_document_can_be_replaced() {
    let replaced =
        |value: &str| run_one(&format!(r#"{{"op":"replace","path":"","value":{value}}}"#));
    assert_eq!(replaced(r#"{"b":1,"a":2}"#).unwrap(), r#"{"a":2,"b":1}"#);
    assert_eq!(replaced("[1]").unwrap(), "[1]");
    for value in ["null", "\"x\"", "5"] {
        assert_eq!(replaced(value), Err(422), "{value}");
    }
    assert_eq!(run_one(r#"{"op":"replace","path":""}"#), Err(422));
    assert_eq!(run_one(r#"{"op":"add","path":"","value":{}}"#), Err(422));
}

#[test]
fn undecodable_patches_have_the_messages_of_go() {
    for (body, validation, message) in [
        (
            "{}",
            FieldValidation::Warn,
            "error decoding patch: json: cannot unmarshal object into Go value of type \
             []handlers.jsonPatchOp",
        ),
        (
            "{}",
            FieldValidation::Ignore,
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        (
            "[null,1]",
            FieldValidation::Warn,
            "error decoding patch: json: cannot unmarshal number into Go value of type \
             handlers.jsonPatchOp",
        ),
        (
            "[[]]",
            FieldValidation::Ignore,
            "json: cannot unmarshal array into Go value of type jsonpatch.Operation",
        ),
        (
            r#"[{"from":{}}]"#,
            FieldValidation::Strict,
            "error decoding patch: json: cannot unmarshal object into Go struct field \
             jsonPatchOp.from of type string",
        ),
        (
            r#"[{"value":[1e400]}]"#,
            FieldValidation::Strict,
            "error decoding patch: json: cannot unmarshal number 1e400 into Go struct field \
             jsonPatchOp.value of type float64",
        ),
        (
            "[}",
            FieldValidation::Warn,
            "error decoding patch: invalid character '}' looking for beginning of value",
        ),
    ] {
        let error = JsonPatch::parse(body.as_bytes(), validation).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (400, message),
            "{body}"
        );
    }
    for body in ["null", "[]"] {
        assert!(run(body).is_ok(), "{body}");
    }
    for body in [
        r#"[{"op":"ADD","path":"/a","value":1}]"#,
        "[null]",
        r#"[{"path":"/a"}]"#,
    ] {
        assert_eq!(run(body), Err(422), "{body}");
    }
}

#[test]
fn oversized_patches_fail() {
    let copy = r#"{"op":"copy","from":"/z","path":"/z/c"}"#;
    assert!(run_one(copy).is_ok());
    let doubling = |i| format!(r#"{{"op":"copy","from":"/z","path":"/z/{i}"}}"#);
    let doubling: Vec<String> = (0..64).map(doubling).collect();
    assert_eq!(run(&format!("[{}]", doubling.join(","))), Err(422));
    let many = vec![copy; OPERATIONS_MAX + 1].join(",");
    assert_eq!(run(&format!("[{many}]")), Err(413));
}

#[test]
fn patches_may_nest_values_as_deep_as_the_decoder_accepts() {
    let nested = |levels: usize| {
        let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        run_one(&format!(r#"{{"op":"add","path":"/deep","value":{value}}}"#))
    };
    assert!(nested(9_000).is_ok());
    // Each operation puts a deep value into the deepest list of the one before.
    let levels = 4_000;
    let value = (0..levels).fold("[]".to_owned(), |inner, _| format!("[{inner}]"));
    let operations: Vec<String> = (0..3)
        .map(|i| {
            let path = "/0".repeat(levels * i) + if i > 0 { "/0" } else { "" };
            format!(r#"{{"op":"add","path":"/deep{path}","value":{value}}}"#)
        })
        .collect();
    assert_eq!(run(&format!("[{}]", operations.join(","))), Err(422));
}
