//! The entries of `metadata.managedFields`.
//!
//! Upstream: `internal/managedfields.go` and `capmanagers.go` of `k8s.io/apimachinery`.

use std::collections::BTreeMap;

use kube_apimachinery::time;
use serde_json::{Map, Value, json};

use super::fields_v1::{self, FieldsError};
use super::set::Set;

/// Maximum number of update entries.
const MAX_UPDATE_MANAGERS: usize = 10;

/// The manager of folded old entries.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// The only format of field sets.
const FIELDS_TYPE: &str = "FieldsV1";

/// The operation that gave a manager its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// The identity of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManagerId {
    /// The manager's name.
    pub name: String,
    /// The operation.
    pub operation: Operation,
    /// The written version; empty for appliers, which have one entry each.
    pub api_version: String,
    /// The written subresource; empty for the object itself.
    pub subresource: String,
}

/// The fields of a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    /// The fields.
    pub set: Set,
    /// The version in which the fields are named.
    pub api_version: String,
    /// True if the manager has applied them.
    pub applied: bool,
}

/// The managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    /// Their fields.
    pub fields: BTreeMap<ManagerId, Fields>,
    /// The times of their last writes, in the API's format.
    pub times: BTreeMap<ManagerId, String>,
}

/// A reason why a list of managers is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// The operation is neither Apply nor Update.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// The version is missing.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// The format is missing.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// The format is unknown.
    #[error("invalid fieldsType {0:?} in managed fields entry {1}")]
    FieldsType(String, usize),
    /// The fields are not a set.
    #[error("error decoding the fields of {0:?}: {1}")]
    Fields(String, FieldsError),
}

impl ManagerId {
    /// Returns a manager that writes through `subresource` (empty: the object itself).
    pub(crate) fn new(
        operation: Operation,
        name: &str,
        api_version: &str,
        subresource: &str,
    ) -> Self {
        let api_version = match operation {
            Operation::Apply => "",
            Operation::Update => api_version,
        };
        Self {
            name: if name.is_empty() { "unknown" } else { name }.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

impl Managed {
    /// Decodes `metadata.managedFields`. The last entry of a manager wins.
    ///
    /// # Errors
    ///
    /// An entry is invalid.
    pub(crate) fn decode(entries: Option<&Value>) -> Result<Self, DecodeError> {
        let mut managed = Self::default();
        let entries = entries.and_then(Value::as_array);
        for (i, entry) in entries.into_iter().flatten().enumerate() {
            let text = |member: &str| entry.get(member).and_then(Value::as_str).unwrap_or("");
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err(DecodeError::Operation),
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err(DecodeError::ApiVersion);
            }
            match text("fieldsType") {
                FIELDS_TYPE => {}
                "" => return Err(DecodeError::NoFieldsType(i)),
                other => return Err(DecodeError::FieldsType(other.to_owned(), i)),
            }
            let name = text("manager");
            let mut id = ManagerId::new(operation, name, api_version, text("subresource"));
            // The default name is only for requests, so keep the entry's name.
            name.clone_into(&mut id.name);
            let set = match entry.get("fieldsV1") {
                None | Some(Value::Null) => Set::EMPTY,
                Some(fields) => fields_v1::decode(fields)
                    .map_err(|err| DecodeError::Fields(name.to_owned(), err))?,
            };
            match text("time") {
                "" => managed.times.remove(&id),
                time => managed.times.insert(id.clone(), time.to_owned()),
            };
            let fields = Fields {
                set,
                api_version: api_version.to_owned(),
                applied: operation == Operation::Apply,
            };
            managed.fields.insert(id, fields);
        }
        Ok(managed)
    }

    /// Encodes `metadata.managedFields`; null if there are no managers.
    pub(crate) fn encode(&self) -> Value {
        let mut entries: Vec<_> = self.fields.iter().collect();
        entries.sort_by_key(|(id, fields)| {
            let operation = operation(id, fields);
            (
                operation,
                self.seconds(id),
                &id.name,
                &fields.api_version,
                &id.subresource,
            )
        });
        if entries.is_empty() {
            return Value::Null;
        }
        entries
            .iter()
            .map(|(id, fields)| self.entry(id, fields))
            .collect()
    }

    fn entry(&self, id: &ManagerId, fields: &Fields) -> Value {
        let mut entry = Map::new();
        let operation = match operation(id, fields) {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let members = [
            ("manager", id.name.as_str()),
            ("operation", operation),
            ("apiVersion", &fields.api_version),
            ("time", self.times.get(id).map_or("", String::as_str)),
            ("fieldsType", FIELDS_TYPE),
            ("subresource", &id.subresource),
        ];
        for (member, text) in members.into_iter().filter(|(_, text)| !text.is_empty()) {
            entry.insert(member.to_owned(), json!(text));
        }
        entry.insert("fieldsV1".to_owned(), fields_v1::encode(&fields.set));
        Value::Object(entry)
    }

    /// Returns the time of a manager's last write in seconds; 0 if it is unknown.
    fn seconds(&self, id: &ManagerId) -> i64 {
        let time = self.times.get(id).and_then(|text| time::parse(text).ok());
        time.map_or(0, jiff::Timestamp::as_second)
    }

    /// Folds the oldest update entries into one per version if there are too many.
    pub(crate) fn cap(&mut self) {
        let mut updaters: Vec<ManagerId> = self
            .fields
            .iter()
            .filter(|(_, fields)| !fields.applied)
            .map(|(id, _)| id.clone())
            .collect();
        let mut left = updaters.len();
        if left <= MAX_UPDATE_MANAGERS {
            return;
        }
        updaters.sort_by_cached_key(|id| (self.seconds(id), id.clone()));
        let mut first_of: BTreeMap<String, ManagerId> = BTreeMap::new();
        for id in updaters {
            if left <= MAX_UPDATE_MANAGERS {
                return;
            }
            let Some(version) = self
                .fields
                .get(&id)
                .map(|fields| fields.api_version.clone())
            else {
                continue;
            };
            let Some(first) = first_of.get(&version).cloned() else {
                first_of.insert(version, id);
                continue;
            };
            let bucket = ManagerId::new(Operation::Update, ANCIENT_CHANGES, &version, "");
            if !self.fields.contains_key(&bucket)
                && let Some(fields) = self.fields.remove(&first)
            {
                self.fields.insert(bucket.clone(), fields);
            }
            if id == bucket {
                continue;
            }
            let time = self.times.get(&id).cloned();
            if let Some(fields) = self.fields.remove(&id)
                && let Some(ancient) = self.fields.get_mut(&bucket)
            {
                ancient.set = ancient.set.union(&fields.set);
                left -= 1;
            }
            // The entry keeps the newest time of its parts.
            match time {
                Some(time) => self.times.insert(bucket, time),
                None => self.times.remove(&bucket),
            };
        }
    }
}

/// Returns the operation of an entry. An applied field set stays applied.
fn operation(id: &ManagerId, fields: &Fields) -> Operation {
    if fields.applied {
        Operation::Apply
    } else {
        id.operation
    }
}
