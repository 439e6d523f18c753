//! The order of encoded field sets: by path element, so that 80 comes before 443, and not by text.

use serde_json::{Map, Value};

use super::path::PathElement;

/// Returns the members of a field set's node in encoding order.
pub(crate) fn sorted_fields(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<(&String, &Value)> = fields.iter().collect();
    if members.len() > 1 && has_numbers(fields) {
        // Members that aren't elements, such as the mark of the field itself, come first.
        members.sort_by_cached_key(|(name, _)| PathElement::parse(name).ok());
    }
    members
}

/// Returns true if elements may contain numbers. Text elements are already sorted.
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
    fn numbers_are_ordered_by_value() {
        let key = |port: u32| format!("k:{{\"containerPort\":{port},\"protocol\":\"TCP\"}}");
        let fields = json!({(key(443)): {}, (key(80)): {}, (key(8080)): {}, ".": {}});
        let names: Vec<&str> = sorted_fields(fields.as_object().unwrap())
            .into_iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, [".", &key(80), &key(443), &key(8080)]);
    }
}
