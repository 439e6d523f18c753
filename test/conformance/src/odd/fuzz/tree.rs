//! JSON values that no JSON library would write.

use serde_json::Value;

/// A JSON value whose strings, names and leaves are bytes; fields may repeat.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    /// A literal value.
    Leaf(Vec<u8>),
    /// An array.
    Array(Vec<Tree>),
    /// An object; names are stored without quotes.
    Object(Vec<(Vec<u8>, Tree)>),
}

impl Tree {
    /// Creates a leaf.
    pub(super) fn leaf(text: impl Into<Vec<u8>>) -> Self {
        Self::Leaf(text.into())
    }

    /// Encodes the value.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Leaf(text) => out.extend_from_slice(text),
            Self::Array(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    out.push(b'"');
                    out.extend_from_slice(name);
                    out.extend_from_slice(b"\":");
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }

    /// Number of values, including this one.
    pub(super) fn len(&self) -> usize {
        1 + match self {
            Self::Leaf(_) => 0,
            Self::Array(items) => items.iter().map(Self::len).sum(),
            Self::Object(members) => members.iter().map(|(_, value)| value.len()).sum(),
        }
    }

    /// Value at an index in encoding order; this one is at 0.
    pub(super) fn at(&mut self, place: usize) -> Option<&mut Self> {
        let Some(mut rest) = place.checked_sub(1) else {
            return Some(self);
        };
        let values: Vec<&mut Self> = match self {
            Self::Leaf(_) => Vec::new(),
            Self::Array(items) => items.iter_mut().collect(),
            Self::Object(members) => members.iter_mut().map(|(_, value)| value).collect(),
        };
        for value in values {
            let len = value.len();
            if rest < len {
                return value.at(rest);
            }
            rest -= len;
        }
        None
    }
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                let members = members.into_iter();
                let members = members.map(|(name, value)| (name.into_bytes(), value.into()));
                Self::Object(members.collect())
            }
            leaf => Self::leaf(leaf.to_string()),
        }
    }
}

/// Kind and name of an object, if both are ordinary.
pub(super) fn identity(object: &[u8]) -> Option<(String, String)> {
    #[derive(serde::Deserialize)]
    struct Object {
        kind: String,
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    struct Metadata {
        name: String,
    }
    let text = kube_apimachinery::json::Document::new(object.to_vec()).into_text();
    let object: Object = serde_json::from_str(&text).ok()?;
    Some((object.kind, object.metadata.name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tree_encodes_its_source() {
        let value = json!({"a": [1, {"b": null}], "c": "x"});
        let tree = Tree::from(value.clone());
        let written: Value = serde_json::from_slice(&tree.encode()).unwrap();
        assert_eq!(written, value);
    }

    #[test]
    fn every_index_has_one_value() {
        let mut tree = Tree::from(json!({"a": [1, {"b": null}], "c": "x"}));
        let len = tree.len();
        let mut at = |place| tree.at(place).map(|value| value.encode());
        assert_eq!(len, 6);
        assert_eq!(at(2).as_deref(), Some(&b"1"[..]));
        assert_eq!(at(4).as_deref(), Some(&b"null"[..]));
        assert_eq!(at(5).as_deref(), Some(&b"\"x\""[..]));
        assert_eq!(at(6), None);
    }
}
