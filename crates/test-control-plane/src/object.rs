//! Objects: a draft while a request is handled, and the stored form that is encoded once.

use std::collections::BTreeMap;

use bytes::Bytes;
use kube_apimachinery::json::to_go_string;
use kube_apimachinery::labels::Labels;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::kinds::{Field, Kind, Trait};
use crate::managed_fields::InOrder;
use crate::members::at;

mod key;
mod raw;

pub use key::Key;
pub use raw::compact;

/// An object as a request brings it, or as it is being changed.
///
/// For kinds with [`Trait::RawData`] the member `data` is not in `value` but in `data`, as text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// The object; always a JSON object.
    pub value: Value,
    /// The text of `.data` for kinds that keep it verbatim.
    pub data: Option<String>,
}

impl Draft {
    /// Parses JSON text.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or not a JSON object.
    pub fn parse(kind: &Kind, text: &[u8]) -> Result<Self, serde_json::Error> {
        if !kind.has(Trait::RawData) {
            let map: Map<String, Value> = serde_json::from_slice(text)?;
            return Ok(Self {
                value: Value::Object(map),
                data: None,
            });
        }
        let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(text)?;
        let mut value = Map::new();
        let mut data = None;
        for (key, raw) in members {
            if key == "data" {
                data = Some(raw.get().to_owned()).filter(|text| text != "null");
            } else {
                value.insert(key, serde_json::from_str(raw.get())?);
            }
        }
        Ok(Self {
            value: Value::Object(value),
            data,
        })
    }

    /// Takes an object apart that is a value already.
    pub fn from_value(kind: &Kind, mut value: Value) -> Self {
        let mut data = None;
        if kind.has(Trait::RawData) {
            data = value
                .as_object_mut()
                .and_then(|map| map.remove("data"))
                .filter(|data| !data.is_null())
                .map(|data| to_go_string(&data));
        }
        Self { value, data }
    }

    /// The object with everything in it.
    pub fn to_value(&self) -> Value {
        let mut value = self.value.clone();
        if let Some(data) = &self.data {
            value["data"] = serde_json::from_str(data).unwrap_or(Value::Null);
        }
        value
    }

    /// The JSON text as clients get it: kind and apiVersion first.
    pub fn encode(&self) -> Vec<u8> {
        let empty = Map::new();
        let map = self.value.as_object().unwrap_or(&empty);
        let mut text = Vec::with_capacity(ENCODED_SIZE);
        text.push(b'{');
        text.extend_from_slice(type_meta(map).as_bytes());
        for (key, value) in map {
            if key == "kind" || key == "apiVersion" {
                continue;
            }
            text.push(b',');
            write_json(&mut text, key);
            text.push(b':');
            match key.as_str() {
                "metadata" => write_json(&mut text, &InOrder::metadata(value)),
                _ => write_json(&mut text, value),
            }
        }
        if let Some(data) = &self.data {
            text.extend_from_slice(b",\"data\":");
            text.extend_from_slice(compact(data).as_bytes());
        }
        text.push(b'}');
        text
    }

    /// The member `metadata`; empty if there is none.
    pub fn metadata(&self) -> MetadataRef<'_> {
        MetadataRef(self.value.get("metadata"))
    }

    /// The member `metadata`, made if missing.
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        object_mut(&mut self.value, "metadata")
    }

    /// The text at a JSON pointer, if there is text.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        at(&self.value, pointer)?.as_str()
    }
}

/// How much room a text has while it is written, in bytes; most objects are smaller.
const ENCODED_SIZE: usize = 4096;

fn write_json(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Values and names are never refused, and neither is a list of bytes.
    let written = serde_json::to_writer(text, value);
    debug_assert!(written.is_ok(), "JSON values can be written");
}

fn type_meta(map: &Map<String, Value>) -> String {
    let null = Value::Null;
    format!(
        "\"kind\":{},\"apiVersion\":{}",
        map.get("kind").unwrap_or(&null),
        map.get("apiVersion").unwrap_or(&null)
    )
}

/// A member of a JSON object that is a JSON object, made if it isn't one.
///
/// # Panics
///
/// If `value` itself is neither an object nor null.
pub fn object_mut<'a>(value: &'a mut Value, member: &str) -> &'a mut Map<String, Value> {
    let slot = &mut value[member];
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut()
        .expect("the member was made an object just above")
}

/// Sets a member, or removes it if the value is null.
pub fn set_or_remove(map: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) if !value.is_null() => {
            map.insert(key.to_owned(), value);
        }
        _ => {
            map.remove(key);
        }
    }
}

/// Reads the usual members of `metadata`.
#[derive(Clone, Copy, Debug)]
pub struct MetadataRef<'a>(pub Option<&'a Value>);

impl<'a> MetadataRef<'a> {
    /// A text member, empty if missing.
    pub fn text(self, member: &str) -> &'a str {
        self.0
            .and_then(|m| m.get(member))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The name.
    pub fn name(self) -> &'a str {
        self.text("name")
    }

    /// The namespace.
    pub fn namespace(self) -> &'a str {
        self.text("namespace")
    }

    /// The uid.
    pub fn uid(self) -> &'a str {
        self.text("uid")
    }

    /// The resource version.
    pub fn resource_version(self) -> &'a str {
        self.text("resourceVersion")
    }

    /// Whether deletion has begun.
    pub fn is_deleting(self) -> bool {
        !self.text("deletionTimestamp").is_empty()
    }

    /// The grace period of a deletion that has begun.
    pub fn deletion_grace_period_seconds(self) -> Option<i64> {
        self.0?.get("deletionGracePeriodSeconds")?.as_i64()
    }

    /// The generation, 0 if there is none.
    pub fn generation(self) -> i64 {
        self.0
            .and_then(|m| m.get("generation"))
            .and_then(Value::as_i64)
            .unwrap_or_default()
    }

    /// The finalizers.
    pub fn finalizers(self) -> Vec<&'a str> {
        self.list("finalizers").filter_map(Value::as_str).collect()
    }

    /// The owner references.
    pub fn owner_references(self) -> impl Iterator<Item = &'a Value> {
        self.list("ownerReferences")
    }

    /// A label's value.
    pub fn label(self, key: &str) -> Option<&'a str> {
        self.0?.get("labels")?.get(key)?.as_str()
    }

    /// An annotation's value.
    pub fn annotation(self, key: &str) -> Option<&'a str> {
        self.0?.get("annotations")?.get(key)?.as_str()
    }

    /// The elements of a member that is a list.
    pub fn list(self, member: &str) -> impl Iterator<Item = &'a Value> {
        self.0
            .and_then(|m| m.get(member))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    }
}

/// A committed version of an object. Its text is encoded once and shared by all readers.
#[derive(Debug)]
pub struct Object {
    /// Where it is stored.
    pub key: Key,
    /// Its uid.
    pub uid: Box<str>,
    /// The revision that wrote it.
    pub resource_version: u64,
    /// Its labels.
    pub labels: Labels,
    /// The values of the fields that its kind can be selected by, in the order of the kind.
    pub fields: Box<[Box<str>]>,
    /// The uids of its owners.
    pub owners: Box<[Box<str>]>,
    /// Whether its deletion has begun.
    pub deleting: bool,
    text: Bytes,
    after_type_meta: usize,
    data: Option<Box<str>>,
}

impl Object {
    /// Encodes a draft as the version `resource_version`, which is written into it.
    pub fn commit(kind: &Kind, key: Key, mut draft: Draft, resource_version: u64) -> Self {
        draft.metadata_mut().insert(
            "resourceVersion".to_owned(),
            json!(resource_version.to_string()),
        );
        let labels = at(&draft.value, "/metadata/labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(k, v)| (k.as_str(), v.as_str().unwrap_or_default()))
            .collect();
        let fields = kind
            .fields
            .iter()
            .map(|field| field_text(field, &draft.value).into_boxed_str())
            .collect();
        let metadata = draft.metadata();
        let owners = metadata
            .owner_references()
            .filter_map(|owner| owner.get("uid")?.as_str())
            .map(Box::from)
            .collect();
        let deleting = metadata.is_deleting();
        let text = draft.encode();
        let after_type_meta = draft
            .value
            .as_object()
            .map_or(0, |map| type_meta(map).len() + "{,".len());
        Self {
            uid: draft.metadata().uid().into(),
            key,
            resource_version,
            labels,
            fields,
            owners,
            deleting,
            // The text stays as long as the object, so that it must not have room to grow.
            text: text.into_boxed_slice().into(),
            after_type_meta,
            data: draft.data.map(String::into_boxed_str),
        }
    }

    /// The JSON text.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// The JSON text after the opening brace, kind and apiVersion: what a list repeats.
    pub fn item_text(&self) -> Bytes {
        self.text.slice(self.after_type_meta.min(self.text.len())..)
    }

    /// The object to work on.
    ///
    /// # Panics
    ///
    /// Never: the text is what [`Draft::encode`] made.
    pub fn draft(&self) -> Draft {
        let mut value: Value =
            serde_json::from_slice(&self.text).expect("the text was encoded by Draft::encode");
        if self.data.is_some()
            && let Some(map) = value.as_object_mut()
        {
            map.remove("data");
        }
        Draft {
            value,
            data: self.data.as_ref().map(ToString::to_string),
        }
    }

    /// The object as a value.
    ///
    /// # Panics
    ///
    /// Never: the text is what [`Draft::encode`] made.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.text).expect("the text was encoded by Draft::encode")
    }
}

fn field_text(field: &Field, object: &Value) -> String {
    let is_there = |value: &&Value| !value.is_null() && *value != "";
    let found = at(object, field.pointer).filter(is_there);
    match found.or_else(|| at(object, field.otherwise?).filter(is_there)) {
        None => field.default.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
