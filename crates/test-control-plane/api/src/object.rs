//! Objects: a mutable draft during a request, and the stored form, which is encoded only once.

use bytes::Bytes;
use kube_apimachinery::json::to_go_string;
use kube_apimachinery::labels::Labels;
use kube_apimachinery::schema::{Type, Version};
use serde_json::{Map, Value, json};

use crate::go::json::held;
use crate::go::json::raw::compact;
use crate::go::json::read::{self, DuplicateMembers, Expect, Scope};
use crate::kinds::{Field, Kind, Trait, type_of};
use crate::members::{at, object_mut};
use encode::Encoder;

mod as_is;
mod encode;
mod equality;
mod finalizers;
mod key;
mod needs;
pub mod raw_members;
mod stored_text;

pub use as_is::AsIs;
pub use as_is::StoreAsIsError;
pub use equality::is_semantically_equal;
pub use finalizers::{FOREGROUND, ORPHAN};
pub use key::Key;
pub use needs::Needs;
pub(crate) use stored_text::raw_member;

/// A mutable object during a request.
///
/// For kinds with [`Trait::RawData`], `data` holds the text of the field `data` and `value` lacks
/// that field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// The object; always a JSON object.
    pub value: Value,
    /// The text of `.data` for kinds that keep it verbatim. Bytes outside UTF-8 are `held` in it.
    pub data: Option<String>,
}

impl Draft {
    /// Parses JSON text as Go does.
    ///
    /// # Errors
    ///
    /// Go's message for text that isn't a JSON object.
    pub fn parse(kind: &Kind, text: &[u8]) -> Result<Self, String> {
        let expect = type_of(kind).map_or(Expect::Anything, Expect::Object);
        let value = read::read(text, expect, DuplicateMembers::Merge)?;
        Self::of_read(kind.has(Trait::RawData), text, value)
    }

    /// Builds the draft of a parsed text and extracts its raw data.
    fn of_read(has_data: bool, text: &[u8], mut value: Value) -> Result<Self, String> {
        let Some(members) = value.as_object_mut() else {
            return Err("not an object".to_owned());
        };
        let mut data = None;
        if has_data {
            members.remove("data");
            data = raw_member(text, "data")
                .filter(|raw| *raw != b"null")
                .map(held::hold);
        }
        Ok(Self { value, data })
    }

    /// Builds a draft from a value and extracts its raw data.
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

    /// Returns the whole object as one value.
    pub fn to_value(&self) -> Value {
        let mut value = self.value.clone();
        if let Some(data) = &self.data {
            let text = held::release(data);
            value["data"] = read::read_checked(
                &text,
                Expect::Anything,
                DuplicateMembers::Merge,
                Scope::Inside,
            );
        }
        value
    }

    /// Encodes the object for clients: with kind, apiVersion and Go's order of fields, or, without a
    /// Go type, as for custom resources, in the order of the names.
    pub fn encode(&self) -> Vec<u8> {
        self.encoded().text
    }

    fn encoded(&self) -> Encoder {
        let empty = Map::new();
        let map = self.value.as_object().unwrap_or(&empty);
        let of = type_in(map);
        let data = self.data.as_deref();
        let null = Value::Null;
        let mut members: Vec<(&str, &Value)> = map
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .chain(data.map(|_| ("data", &null)))
            .collect();
        match of {
            Some(of) => members.sort_by_cached_key(|(name, _)| encode::place(of, name)),
            None => members.sort_by_key(|(name, _)| *name),
        }
        let mut encoder = Encoder {
            text: Vec::with_capacity(ENCODED_SIZE),
            has_held: false,
            after_type_meta: "{".len(),
        };
        encoder.text.push(b'{');
        for (index, (name, value)) in members.into_iter().enumerate() {
            if index > 0 {
                encoder.text.push(b',');
            }
            match data {
                Some(data) if name == "data" => {
                    encoder.name(name);
                    let raw = held::release(data);
                    encoder.has_held |= serde_json::from_slice::<Value>(&raw).is_err();
                    encoder.text.extend_from_slice(&compact(&raw));
                }
                _ => encoder.root_member(of, name, value),
            }
            if of.is_some() && name == "apiVersion" {
                encoder.after_type_meta = encoder.text.len() + ",".len();
            }
        }
        encoder.text.push(b'}');
        encoder
    }

    /// Returns the field `metadata`; empty if it is missing.
    pub fn metadata(&self) -> MetadataRef<'_> {
        MetadataRef(self.value.get("metadata"))
    }

    /// Returns the field `metadata`, creating it if missing.
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        object_mut(&mut self.value, "metadata")
    }

    /// Returns the string at a JSON pointer, if there is one.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        at(&self.value, pointer)?.as_str()
    }
}

/// Initial buffer size for encoding, in bytes. Most objects are smaller.
const ENCODED_SIZE: usize = 4096;

/// Returns the schema type of an object, from its kind and apiVersion.
fn type_in(members: &Map<String, Value>) -> Option<&'static Type> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    Version::NEWEST.type_of_kind(text("apiVersion")?, text("kind")?)
}

/// Reads the standard fields of `metadata`.
#[derive(Clone, Copy, Debug)]
pub struct MetadataRef<'a>(pub Option<&'a Value>);

impl<'a> MetadataRef<'a> {
    /// Returns a string field; empty if it is missing.
    pub fn text(self, member: &str) -> &'a str {
        self.0
            .and_then(|m| m.get(member))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Returns the name.
    pub fn name(self) -> &'a str {
        self.text("name")
    }

    /// Returns the name for messages: that of an object whose name is still to be generated is its
    /// prefix.
    ///
    /// Upstream: `extractResourceName`
    pub fn shown_name(self) -> &'a str {
        let prefix = match self.text("generateName") {
            "" => "Unknown",
            prefix => prefix,
        };
        Some(self.name())
            .filter(|name| !name.is_empty())
            .unwrap_or(prefix)
    }

    /// Returns the namespace.
    pub fn namespace(self) -> &'a str {
        self.text("namespace")
    }

    /// Returns the uid.
    pub fn uid(self) -> &'a str {
        self.text("uid")
    }

    /// Returns the resource version.
    pub fn resource_version(self) -> &'a str {
        self.text("resourceVersion")
    }

    /// Returns true if deletion has begun.
    pub fn is_deleting(self) -> bool {
        !self.text("deletionTimestamp").is_empty()
    }

    /// Returns the grace period of a deletion that has begun.
    pub fn deletion_grace_period_seconds(self) -> Option<i64> {
        self.0?.get("deletionGracePeriodSeconds")?.as_i64()
    }

    /// Returns the generation; 0 if there is none.
    pub fn generation(self) -> i64 {
        self.0
            .and_then(|m| m.get("generation"))
            .and_then(Value::as_i64)
            .unwrap_or_default()
    }

    /// Returns the finalizers.
    pub fn finalizers(self) -> Vec<&'a str> {
        self.list("finalizers").filter_map(Value::as_str).collect()
    }

    /// Returns the owner references.
    pub fn owner_references(self) -> impl Iterator<Item = &'a Value> {
        self.list("ownerReferences")
    }

    /// Returns a label's value.
    pub fn label(self, key: &str) -> Option<&'a str> {
        self.0?.get("labels")?.get(key)?.as_str()
    }

    /// Returns an annotation's value.
    pub fn annotation(self, key: &str) -> Option<&'a str> {
        self.0?.get("annotations")?.get(key)?.as_str()
    }

    /// Returns the elements of a list field.
    pub fn list(self, member: &str) -> impl Iterator<Item = &'a Value> {
        self.0
            .and_then(|m| m.get(member))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    }
}

/// A committed version of an object. All readers share its encoded text.
#[derive(Debug)]
pub struct Object {
    /// Its storage key.
    pub key: Key,
    /// Its uid.
    pub uid: Box<str>,
    /// The revision that wrote it.
    pub resource_version: u64,
    /// Its labels.
    pub labels: Labels,
    /// The values of the kind's selectable fields, in the order of the kind.
    pub fields: Box<[Box<str>]>,
    /// The uids of its owners.
    pub owners: Box<[Box<str>]>,
    /// True if its deletion has begun.
    pub deleting: bool,
    text: Bytes,
    after_type_meta: usize,
    data: Option<Box<str>>,
    /// True if only Go's JSON rules can read the text.
    is_odd: bool,
}

impl Object {
    /// Encodes a draft and sets its `resource_version`.
    pub fn commit(kind: &Kind, key: Key, mut draft: Draft, resource_version: u64) -> Self {
        draft.metadata_mut().insert(
            "resourceVersion".to_owned(),
            json!(resource_version.to_string()),
        );
        let encoded = draft.encoded();
        Self {
            after_type_meta: encoded.after_type_meta,
            is_odd: encoded.has_held,
            ..Self::of_text(kind, key, draft, resource_version, encoded.text)
        }
    }

    /// Builds a version with this text, which may differ from the draft's encoding.
    fn of_text(kind: &Kind, key: Key, draft: Draft, resource_version: u64, text: Vec<u8>) -> Self {
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
        Self {
            uid: draft.metadata().uid().into(),
            key,
            resource_version,
            labels,
            fields,
            owners,
            deleting,
            // The text lives as long as the object, so drop its spare capacity.
            text: text.into_boxed_slice().into(),
            after_type_meta: "{".len(),
            data: draft.data.map(String::into_boxed_str),
            is_odd: true,
        }
    }

    /// Returns the JSON text.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// Returns the JSON text of a list item: without the opening brace, and without the kind and
    /// apiVersion of a Go type.
    pub fn item_text(&self) -> Bytes {
        self.text.slice(self.after_type_meta.min(self.text.len())..)
    }

    /// Returns a draft of the object to change.
    pub fn draft(&self) -> Draft {
        let mut value = self.read();
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

    /// Returns the object as a value. Raw text that no value can represent becomes a string.
    pub fn value(&self) -> Value {
        self.read()
    }

    /// Returns true if only Go's JSON rules can read the text, for example because of deep nesting.
    pub fn needs_go_rules(&self) -> bool {
        self.is_odd
    }

    fn read(&self) -> Value {
        if !self.is_odd
            && let Ok(value) = serde_json::from_slice(&self.text)
        {
            return value;
        }
        stored_text::read(&self.text)
    }
}

/// Returns the value of a selectable field.
pub(crate) fn field_text(field: &Field, object: &Value) -> String {
    let is_there = |value: &&Value| !value.is_null() && *value != "";
    let found = at(object, &field.pointer).filter(is_there);
    match found.or_else(|| at(object, field.otherwise.as_ref()?).filter(is_there)) {
        None => field.default.clone(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
