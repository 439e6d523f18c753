//! The parts of a definition that its handling needs, and its defaults.

use serde_json::{Map, Value, json};

use super::schema::{flag, texts};
use super::trust::fault_of_bundle;
use crate::members::{list_at, object_mut, text, text_at};

/// A custom resource definition.
#[derive(Clone, Copy, Debug)]
pub struct Definition<'a>(pub &'a Value);

impl<'a> Definition<'a> {
    /// Returns its name: the resource with its group.
    pub fn name(self) -> &'a str {
        text_at(self.0, "/metadata/name")
    }

    /// Returns the API group.
    pub(crate) fn group(self) -> &'a str {
        text_at(self.0, "/spec/group")
    }

    /// Returns the accepted kind.
    pub(crate) fn kind(self) -> &'a str {
        text_at(self.0, "/status/acceptedNames/kind")
    }

    /// Returns true if the resources are namespaced.
    pub fn is_namespaced(self) -> bool {
        text_at(self.0, "/spec/scope") == "Namespaced"
    }

    /// Returns the versions, in their order in the definition.
    pub(crate) fn versions(self) -> impl Iterator<Item = &'a Value> {
        list_at(self.0, "/spec/versions")
    }

    /// Returns the version in which objects are stored.
    pub(crate) fn storage_version(self) -> Option<&'a Value> {
        self.versions()
            .find(|version| version.get("storage") == Some(&json!(true)))
    }

    /// Returns a condition of the status.
    pub(crate) fn condition(self, of: &str) -> Option<&'a Value> {
        list_at(self.0, "/status/conditions").find(|condition| text(condition, "type") == of)
    }

    /// Returns true if a condition has the status `True`.
    pub(crate) fn is(self, condition: &str) -> bool {
        self.condition(condition)
            .is_some_and(|found| text(found, "status") == "True")
    }

    /// Returns true if the resource is served.
    pub fn is_established(self) -> bool {
        self.is("Established")
    }

    /// Returns true if upstream can't resolve the resource of a served version, because it can't read
    /// the certificates of the conversion webhook.
    ///
    /// Upstream: `getOrCreateServingInfoFor`
    pub fn is_unresolved(self, version: &str) -> bool {
        let mut versions = self.versions();
        let is_served = |found: &Value| text(found, "name") == version && flag(found, "served");
        (self.is("NamesAccepted") || self.is_established())
            && versions.any(is_served)
            && fault_of_bundle(self.bundle()).is_some()
    }

    /// Returns the certificates of the conversion webhook, in base64.
    pub(super) fn bundle(self) -> &'a str {
        text_at(self.0, "/spec/conversion/webhook/clientConfig/caBundle")
    }

    /// Returns true if its deletion has begun.
    pub fn is_deleting(self) -> bool {
        !text_at(self.0, "/metadata/deletionTimestamp").is_empty()
    }
}

/// Sets the defaults of a definition.
///
/// Upstream: `SetDefaults_CustomResourceDefinition` and `SetDefaults_CustomResourceDefinitionSpec`
pub fn set_defaults(definition: &mut Value) {
    let Some(members) = definition.as_object_mut() else {
        return;
    };
    // An absent spec has defaults like an empty one.
    let spec = members.entry("spec").or_insert_with(|| json!({}));
    if spec.is_null() {
        *spec = json!({});
    }
    let Some(spec) = spec.as_object_mut() else {
        return;
    };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().to_owned();
        fill(names, "singular", kind.to_lowercase());
        if !kind.is_empty() {
            fill(names, "listKind", format!("{kind}List"));
        }
    }
    let is_absent = |value: Option<&Value>| value.is_none_or(Value::is_null);
    if is_absent(spec.get("conversion")) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let stored = definition.pointer("/status/storedVersions");
    if stored.and_then(Value::as_array).is_none_or(Vec::is_empty) {
        note_stored_version(definition);
    }
}

fn fill(members: &mut Map<String, Value>, name: &str, value: String) {
    let is_empty = |found: &Value| found.is_null() || found == "";
    if !value.is_empty() && members.get(name).is_none_or(is_empty) {
        members.insert(name.to_owned(), Value::String(value));
    }
}

/// Adds the storage version to the stored versions.
///
/// Upstream: `SetCRDStoredVersions` in `PrepareForCreate` and `PrepareForUpdate`
pub fn note_stored_version(definition: &mut Value) {
    let Some(version) = Definition(definition).storage_version() else {
        return;
    };
    let version = text(version, "name").to_owned();
    let status = object_mut(definition, "status");
    let mut stored = texts(&Value::Object(status.clone()), "storedVersions");
    if !stored.contains(&version) {
        stored.push(version);
        status.insert("storedVersions".to_owned(), json!(stored));
    }
}
