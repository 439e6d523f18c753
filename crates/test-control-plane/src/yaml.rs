//! YAML answers.

use serde_json::Value;
use serde_saphyr::SerializerOptions;

/// The YAML form of JSON text: members by name, lists not indented, as Kubernetes prints it. None
/// if the text isn't JSON.
pub(crate) fn from_json(text: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let mut options = SerializerOptions::default();
    // Lines are as long as they are: a folded text is harder to read and to search.
    options.folded_wrap_chars = usize::MAX;
    serde_saphyr::to_string_with_options(&value, options).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_looks_as_kubernetes_prints_it() {
        let value = json!({
            "kind": "Pod",
            "metadata": {"labels": {"a": "true", "b": "1", "c": ""}, "finalizers": []},
            "spec": {"containers": [{"name": "c", "args": ["-x", "a: b"], "resources": {}}]},
            "status": null,
        });
        let text = from_json(value.to_string().as_bytes()).unwrap();
        let wanted = "kind: Pod\nmetadata:\n  finalizers: []\n  labels:\n    a: \"true\"\n    \
                      b: \"1\"\n    c: \"\"\nspec:\n  containers:\n  - args:\n    - -x\n    \
                      - \"a: b\"\n    name: c\n    resources: {}\nstatus: null\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn texts_come_back_as_they_were() {
        let long = "word ".repeat(60);
        for text in [
            "",
            " a",
            "a ",
            "a\nb\n",
            "a\n\n",
            "\tx",
            "null",
            "1.5",
            "0x1f",
            "2026-01-01",
            "yes",
            "#",
            "- a",
            "k:{\"name\":\"c\"}",
            "é\u{7}",
            "a #b",
            "x\r\ny",
            &long,
        ] {
            let value = json!({"a": {"b": [text], text: 1}});
            let yaml = from_json(value.to_string().as_bytes()).unwrap();
            let back: Value = serde_saphyr::from_str(&yaml).unwrap();
            assert_eq!(back, value, "{yaml}");
        }
    }
}
