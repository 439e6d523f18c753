//! Tests of YAML responses. The expected texts are the output of upstream's own library.

use serde_json::json;

use super::*;

fn yaml(value: &Value) -> String {
    from_json(value.to_string().as_bytes()).unwrap()
}

#[test]
fn document_matches_kubernetes_output() {
    let value = json!({
        "kind": "Pod",
        "metadata": {"labels": {"a": "true", "b": "1", "c": ""}, "finalizers": []},
        "spec": {"containers": [{"name": "c", "args": ["-x", "a: b"], "resources": {}}]},
        "lists": [[1, [2, {"x": null}]], [], {}, "s\nt"],
        "status": null,
    });
    let wanted = "kind: Pod\nlists:\n- - 1\n  - - 2\n    - x: null\n- []\n- {}\n- |-\n  s\n  t\n\
                  metadata:\n  finalizers: []\n  labels:\n    a: \"true\"\n    b: \"1\"\n    \
                  c: \"\"\nspec:\n  containers:\n  - args:\n    - -x\n    - 'a: b'\n    \
                  name: c\n    resources: {}\nstatus: null\n";
    assert_eq!(yaml(&value), wanted);
    assert_eq!(yaml(&json!({})), "{}\n");
    assert_eq!(yaml(&json!("x")), "x\n");
    assert_eq!(from_json(b"no json"), None);
}

#[test]
fn strings_are_quoted_only_where_needed() {
    for (text, written) in [
        ("", "\"\""),
        ("~", "\"~\""),
        ("null", "\"null\""),
        ("y", "\"y\""),
        ("Off", "\"Off\""),
        ("nO", "nO"),
        ("1.5", "\"1.5\""),
        ("1.2.3", "1.2.3"),
        ("0x1f", "\"0x1f\""),
        ("0x", "0x"),
        ("1_000", "\"1_000\""),
        ("1e3", "\"1e3\""),
        ("5.", "\"5.\""),
        (".", "."),
        ("0b1", "\"0b1\""),
        ("0b2", "0b2"),
        ("1:30", "\"1:30\""),
        ("-.inf", "\"-.inf\""),
        ("2026-01-01", "\"2026-01-01\""),
        ("2026-01-01T00:00:00Z", "\"2026-01-01T00:00:00Z\""),
        ("2026-13-01", "2026-13-01"),
        ("-x", "-x"),
        ("- x", "'- x'"),
        ("#", "'#'"),
        ("a #b", "'a #b'"),
        ("a#b", "a#b"),
        ("x:", "'x:'"),
        (":x", ":x"),
        ("k:{\"name\":\"c\"}", "k:{\"name\":\"c\"}"),
        ("{a", "'{a'"),
        ("a, b", "a, b"),
        ("it's", "it's"),
        ("'x", "'''x'"),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("x\ty", "\"x\\ty\""),
        ("é\u{7}", "\"é\\a\""),
        ("\u{1f600}", "\"\\U0001F600\""),
        ("\u{feff}x", "\"\\uFEFF\\x78\""),
        ("a\\b", "a\\b"),
        ("--- a", "'--- a'"),
        ("a\nb\n", "|\n  a\n  b"),
        ("a\nb", "|-\n  a\n  b"),
        ("a\n\n", "|+\n  a\n"),
        (" a\nb", "|2-\n   a\n  b"),
        ("a \nb", "\"a \\nb\""),
    ] {
        assert_eq!(
            yaml(&json!({"k": text})),
            format!("k: {written}\n"),
            "{text:?}"
        );
    }
}

#[test]
fn long_strings_are_folded() {
    let words = "word ".repeat(20);
    let full = "word ".repeat(15);
    let wanted = format!("k: '{full}word\n  word word word word '\n");
    assert_eq!(yaml(&json!({"k": words})), wanted);
    let wanted = format!("k: {full}word\n  word word word word\n");
    assert_eq!(yaml(&json!({"k": words.trim_end()})), wanted);
    let key = "k".repeat(129);
    assert_eq!(yaml(&json!({&key: 1})), format!("? {key}\n: 1\n"));
}

#[test]
fn keys_are_sorted_by_embedded_numbers() {
    let value = json!({"k10": 1, "k2": 1, ".": 1, "f:x": 1, "a.b": 1, "ab": 1});
    assert_eq!(yaml(&value), ".: 1\na.b: 1\nab: 1\nf:x: 1\nk2: 1\nk10: 1\n");
}

#[test]
fn strings_survive_a_round_trip() {
    let long = "word ".repeat(60);
    let hard = [
        "", "a\nb\n", "\tx", "null", "0x1f", "- a", "é\u{7}", "a #b", "x\r\ny", &long,
    ];
    for text in hard {
        let value = json!({"a": {"b": [text], text: 1}});
        let written = yaml(&value);
        let read: Value = serde_saphyr::from_str(&written).unwrap();
        assert_eq!(read, value, "{written}");
    }
}
