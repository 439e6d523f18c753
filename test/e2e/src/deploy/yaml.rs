//! YAML files of one or several documents.

use serde_json::Value;

/// The documents of a text; those that hold nothing but comments are left out.
///
/// # Panics
///
/// One of them is no YAML.
pub fn documents(text: &str, whose: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").map(|part| {
        let document: Value = serde_saphyr::from_str(part)
            .unwrap_or_else(|error| panic!("{whose} is no YAML: {error}\n{part}"));
        document
    });
    documents.filter(|document| !document.is_null()).collect()
}
