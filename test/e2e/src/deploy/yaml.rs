//! Parser of YAML files with one or several documents.

use serde_json::Value;

/// Documents of a text, without those that contain only comments.
///
/// # Panics
///
/// Panics if a document is not valid YAML.
pub fn documents(text: &str, whose: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").map(|part| {
        let document: Value = serde_saphyr::from_str(part)
            .unwrap_or_else(|error| panic!("{whose} is not valid YAML: {error}\n{part}"));
        document
    });
    documents.filter(|document| !document.is_null()).collect()
}
