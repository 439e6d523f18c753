//! The order in which the members of a field set are written: that of their path elements, in which
//! 80 stands before 443, and not that of their texts.

use serde_json::{Map, Value};

use super::path::PathElement;

/// The members of a part of a field set, in the order in which they are written.
pub(crate) fn sorted_fields(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<(&String, &Value)> = fields.iter().collect();
    if members.len() > 1 && has_numbers(fields) {
        // What is no element, such as the mark of the field itself, comes first.
        members.sort_by_cached_key(|(name, _)| PathElement::parse(name).ok());
    }
    members
}

/// Whether elements may be told apart by numbers; texts are in order already.
fn has_numbers(fields: &Map<String, Value>) -> bool {
    let is_number = |pair: &[u8]| pair[0] == b':' && (pair[1].is_ascii_digit() || pair[1] == b'-');
    let mut names = fields.keys();
    names.any(|name| name.as_bytes().windows(2).any(is_number))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_ordered_as_numbers() {
        let key = |port: u32| format!("k:{{\"containerPort\":{port},\"protocol\":\"TCP\"}}");
        let fields = json!({(key(443)): {}, (key(80)): {}, (key(8080)): {}, ".": {}});
        let names: Vec<&str> = sorted_fields(fields.as_object().unwrap())
            .into_iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, [".", &key(80), &key(443), &key(8080)]);
    }
}
