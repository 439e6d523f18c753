//! Lists cut at every byte.

use super::*;

/// Reads a text in two pieces. Returns the items and the envelope.
fn read(text: &[u8], cut: usize) -> (Vec<String>, String) {
    let mut items = Items::default();
    let mut found = Vec::new();
    let (first, second) = text.split_at(cut);
    for piece in [first, second] {
        items.push(Bytes::copy_from_slice(piece));
        while let Some(item) = items.next() {
            found.push(String::from_utf8_lossy(&item).into_owned());
        }
    }
    let envelope = items.into_envelope();
    (found, String::from_utf8_lossy(&envelope).into_owned())
}

#[test]
fn items_are_found_at_every_cut() {
    let objects = [
        r#"{"a":[1,{"b":"]}\\"},"\""],"items":[2]}"#,
        r#""s,]""#,
        "null",
        "[]",
        "-1.5e3",
        "{}",
    ];
    for (separator, wrong) in [(",", false), (" ,\n ", false), ("", true)] {
        let text = format!(
            r#"{{"metadata":{{"items":["no"],"x":"\"items\":["}},"items" : [{}] ,"kind":"L"}}"#,
            objects.join(separator)
        );
        for cut in 0..=text.len() {
            let (items, envelope) = read(text.as_bytes(), cut);
            if wrong {
                assert_ne!(items, objects, "literals need a separator");
            } else {
                assert_eq!(items, objects, "cut at {cut}");
            }
            let expected =
                r#"{"metadata":{"items":["no"],"x":"\"items\":["},"items" : [] ,"kind":"L"}"#;
            assert_eq!(envelope, expected, "cut at {cut}");
        }
    }
}

#[test]
fn lists_without_items_are_all_envelope() {
    for text in [
        "",
        r#"{"items":null,"metadata":{}}"#,
        r#"{"spec":{"items":[1]}}"#,
        r#"[["items":[1]]]"#,
        r#"{"it\u0065ms":[1]}"#,
        r#"{"items":{"a":1}}"#,
    ] {
        for cut in 0..=text.len() {
            assert_eq!(read(text.as_bytes(), cut), (Vec::new(), text.to_owned()));
        }
    }
}

#[test]
fn truncated_list_has_no_whole_envelope() {
    let text = r#"{"items":[{"a":1},{"b":2}],"metadata":{}}"#;
    for length in 0..text.len() {
        let (_, envelope) = read(text.get(..length).unwrap().as_bytes(), 0);
        let read = serde_json::from_str::<serde_json::Value>(&envelope);
        assert!(read.is_err(), "{length}: {envelope}");
    }
}

#[test]
fn unbalanced_brackets_never_panic() {
    for text in [
        "]]]]",
        "}}[[",
        r#"{"items":[}}]],]]"#,
        r#"{"items":[{"a":]}"#,
        "{\"items\":[\"\\",
    ] {
        for cut in 0..=text.len() {
            read(text.as_bytes(), cut);
        }
    }
}
