//! Label maps: a compact one for cached objects, and the interface for selectors.

use std::collections::BTreeMap;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A collection of labels that selectors can match.
pub trait LabelSet {
    /// The value of the label `key`, if present.
    fn label(&self, key: &str) -> Option<&str>;
}

/// The largest number of labels that are searched one by one.
const FEW: usize = 8;

/// A compact label map: the sorted pairs in one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Each key with its value behind it.
    text: Box<str>,
    places: Box<[Place]>,
}

/// The place of a label in the text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    start: u32,
    key_len: u32,
    value_len: u32,
}

impl Labels {
    /// The value of the label `key`, if present.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&str> {
        if self.places.len() > FEW {
            return self.get_among_many(key);
        }
        // Keys mostly differ in length, so that few are compared.
        let mut same_length = self
            .places
            .iter()
            .filter(|it| it.key_len as usize == key.len());
        let place = same_length.find(|place| self.key(place) == key.as_bytes())?;
        Some(self.value(place))
    }

    /// Kept out of [`Labels::get`], which is inlined.
    #[cold]
    fn get_among_many(&self, key: &str) -> Option<&str> {
        let order = |place: &Place| self.key(place).cmp(key.as_bytes());
        let index = self.places.binary_search_by(order).ok()?;
        Some(self.value(self.places.get(index)?))
    }

    /// Returns true if the map is empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The pairs, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places.iter().map(|place| {
            let key = place.start as usize..place.value_start();
            (self.text.get(key).unwrap_or_default(), self.value(place))
        })
    }

    fn key(&self, place: &Place) -> &[u8] {
        let range = place.start as usize..place.value_start();
        self.text.as_bytes().get(range).unwrap_or_default()
    }

    fn value(&self, place: &Place) -> &str {
        let start = place.value_start();
        let range = start..start + place.value_len as usize;
        self.text.get(range).unwrap_or_default()
    }
}

impl Place {
    fn value_start(&self) -> usize {
        self.start as usize + self.key_len as usize
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for Labels {
    /// Collects pairs; of equal keys the last one wins. Labels beyond 4 GiB become empty.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(K, V)> = pairs.into_iter().collect();
        pairs.sort_by(|(one, _), (other, _)| one.as_ref().cmp(other.as_ref()));
        let (mut text, mut places) = (String::new(), Vec::with_capacity(pairs.len()));
        for same in pairs.chunk_by(|(one, _), (other, _)| one.as_ref() == other.as_ref()) {
            let Some((key, value)) = same.last() else {
                continue;
            };
            let (key, value) = (key.as_ref(), value.as_ref());
            let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            places.push(Place {
                start: number(text.len()),
                key_len: number(key.len()),
                value_len: number(value.len()),
            });
            text.push_str(key);
            text.push_str(value);
        }
        Self {
            text: text.into(),
            places: places.into(),
        }
    }
}

impl LabelSet for Labels {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)
    }
}

impl LabelSet for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl LabelSet for serde_json::Map<String, serde_json::Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LabelsVisitor;

        impl<'de> Visitor<'de> for LabelsVisitor {
            type Value = Labels;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_unit<E>(self) -> Result<Labels, E> {
                Ok(Labels::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Option<String>>()? {
                    pairs.push((key, value.unwrap_or_default()));
                }
                Ok(pairs.into_iter().collect())
            }
        }

        deserializer.deserialize_any(LabelsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_by_key_and_serialized_in_order() {
        let labels: Labels = serde_json::from_str(r#"{"b":"2","a":"1","c":null}"#).unwrap();
        assert_eq!(labels.get("a"), Some("1"));
        assert_eq!(labels.get("c"), Some(""));
        assert_eq!(labels.get("d"), None);
        assert_eq!(
            serde_json::to_string(&labels).unwrap(),
            r#"{"a":"1","b":"2","c":""}"#
        );
    }

    #[test]
    fn last_of_equal_keys_wins_among_few_and_many() {
        for count in [1, FEW, FEW + 1, 100] {
            let pairs = |value: &'static str| {
                (0..count)
                    .rev()
                    .map(move |number| (format!("kä{number}"), value))
            };
            let labels: Labels = pairs("old").chain(pairs("new")).collect();
            assert_eq!(labels.iter().count(), count);
            assert!(labels.iter().is_sorted());
            for (key, value) in labels.iter() {
                assert_eq!((labels.get(key), value), (Some("new"), "new"));
            }
            assert_eq!(labels.get("kä"), None);
            assert_eq!(labels, pairs("new").collect());
            assert_ne!(labels, pairs("old").collect());
        }
    }

    #[test]
    fn null_deserializes_to_no_labels() {
        assert!(serde_json::from_str::<Labels>("null").unwrap().is_empty());
    }
}
