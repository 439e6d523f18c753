//! Metadata as it is written: field sets come in the order of their path elements, in which 80
//! stands before 443, and not in that of their texts.

use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::path::PathElement;

/// The member `metadata` of an object, to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InOrder<'a> {
    value: &'a Value,
    place: Place,
}

/// What a value is within metadata.
#[derive(Clone, Copy, Debug)]
enum Place {
    Metadata,
    Managers,
    Manager,
    Fields,
    /// Nothing that has field sets in it.
    Other,
}

impl<'a> InOrder<'a> {
    /// The metadata of an object.
    pub(crate) fn metadata(value: &'a Value) -> Self {
        let place = Place::Metadata;
        Self { value, place }
    }

    fn member(self, name: &str, value: &'a Value) -> Self {
        let place = match (self.place, name) {
            (Place::Metadata, "managedFields") => Place::Managers,
            (Place::Manager, "fieldsV1") | (Place::Fields, _) => Place::Fields,
            _ => Place::Other,
        };
        Self { value, place }
    }
}

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.place, self.value) {
            (Place::Managers, Value::Array(list)) => {
                let place = Place::Manager;
                serializer.collect_seq(list.iter().map(|value| InOrder { value, place }))
            }
            (Place::Fields, Value::Object(map)) if map.len() > 1 && has_numbers(map) => {
                let mut members: Vec<(&String, &Value)> = map.iter().collect();
                // What is no element, such as the mark of the field itself, comes first.
                members.sort_by_cached_key(|(name, _)| PathElement::parse(name).ok());
                let members = members.into_iter();
                serializer.collect_map(members.map(|(name, v)| (name, self.member(name, v))))
            }
            (Place::Metadata | Place::Manager | Place::Fields, Value::Object(map)) => {
                serializer.collect_map(map.iter().map(|(name, v)| (name, self.member(name, v))))
            }
            (_, value) => value.serialize(serializer),
        }
    }
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
        let fields = json!({".": {}, "f:ports": {
            (key(443)): {}, (key(80)): {"f:b": {}, "f:a": {}}, (key(8080)): {}, ".": {},
        }});
        let metadata = json!({
            "name": "x", "labels": {"k:1": "", "k:10": "", "k:2": ""},
            "managedFields": [{"manager": "m", "fieldsV1": fields}],
        });
        let text = serde_json::to_string(&InOrder::metadata(&metadata)).unwrap();
        let places: Vec<usize> = [
            "\".\":{},\"k:",
            "Port\\\":80,",
            "Port\\\":443,",
            "Port\\\":8080,",
        ]
        .iter()
        .map(|part| text.find(part).unwrap())
        .collect();
        assert!(places.is_sorted(), "{text}");
        assert!(
            text.contains("\"k:1\":\"\",\"k:10\":\"\",\"k:2\":\"\""),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), metadata);
    }
}
