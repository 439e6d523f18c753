//! The data that a revision records: the pod template, marked as a replacement.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use kube_apimachinery::json::{numbers_as_doubles, to_go_string};
use kube_apimachinery::schema::{Path, UnknownMembers, get_path, normalize, unknown_members};
use serde_json::{Value, json};
use statefulset_controller_util::stateful_set::PodTemplate;

#[cfg(test)]
mod tests;

/// The Go type of a pod template.
pub(crate) const TEMPLATE_TYPE: &str = "PodTemplateSpec";
/// Where the template stands in a set; error texts name it.
pub(crate) const TEMPLATE_PATH: &str = "spec.template";

/// What a set's template would be recorded as.
pub struct RevisionData {
    template: PodTemplate,
    recorded: Arc<str>,
    /// What the reference, which drops what it doesn't know, would record; none where the template
    /// has a value that the reference's types can't hold.
    known: OnceLock<Option<Arc<str>>>,
}

impl RevisionData {
    /// Builds the data of a template.
    pub fn new(template: &PodTemplate) -> Self {
        Self {
            recorded: encode(template.to_value()),
            template: template.clone(),
            known: OnceLock::new(),
        }
    }

    /// Builds the data of a template as versions before 1.34 record it: an empty creation time is a
    /// member of its own, `null`. It equals the same revisions as [`Self::new`], and the revisions
    /// that those versions recorded: nothing rolls because of the form.
    pub fn with_null_creation_time(template: &PodTemplate) -> Self {
        let mut value = template.to_value();
        add_null_creation_times(&mut value);
        Self {
            recorded: encode(value),
            ..Self::new(template)
        }
    }

    /// The bytes that a new revision records: the whole template, unknown members included.
    pub fn recorded(&self) -> &Arc<str> {
        &self.recorded
    }

    /// The bytes that the reference would record: the template without members that v1.36.2
    /// doesn't know. `None` where the reference couldn't read the template.
    pub fn known(&self) -> Option<&Arc<str>> {
        let build = || known_members(&self.template.to_value()).ok().map(encode);
        self.known.get_or_init(build).as_ref()
    }

    /// Whether a recorded revision holds this data: these bytes, or those that the reference would
    /// have recorded.
    pub fn equals(&self, data: &str) -> bool {
        *self.recorded == *data || self.known().is_some_and(|known| **known == *data)
    }

    /// Whether every unknown member of a recorded template is in this one with the same value.
    pub(crate) fn has_unknown_members_of(&self, recorded_template: &Value) -> bool {
        let (mut template, mut recorded_template) =
            (self.template.to_value(), recorded_template.clone());
        numbers_as_doubles(&mut template);
        numbers_as_doubles(&mut recorded_template);
        unknown_members(TEMPLATE_TYPE, &recorded_template)
            .into_iter()
            .all(|(path, value): (Path, &Value)| get_path(&template, &path) == Some(value))
    }

    /// The labels of the template; a revision carries them.
    pub(crate) fn template_labels(&self) -> BTreeMap<String, String> {
        let template = self.template.to_value();
        let labels = template["metadata"]["labels"].as_object();
        labels
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or("").to_owned()))
            .collect()
    }
}

/// A template without the members that v1.36.2 doesn't know, encoded as Go encodes it.
pub(crate) fn known_members(
    template: &Value,
) -> Result<Value, kube_apimachinery::schema::DecodeError> {
    normalize(TEMPLATE_TYPE, template, UnknownMembers::Drop, TEMPLATE_PATH)
}

/// Adds the creation times that Go wrote before 1.34: of the template, and of the claim templates
/// of its ephemeral volumes.
fn add_null_creation_times(template: &mut Value) {
    let volumes = template.pointer_mut("/spec/volumes");
    let volumes = volumes.and_then(Value::as_array_mut).into_iter().flatten();
    for claim in volumes.filter_map(|it| it.pointer_mut("/ephemeral/volumeClaimTemplate")) {
        add_null_creation_time(claim);
    }
    add_null_creation_time(template);
}

fn add_null_creation_time(object: &mut Value) {
    let Value::Object(members) = object else {
        return;
    };
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    if let Value::Object(metadata) = metadata {
        metadata.entry("creationTimestamp").or_insert(Value::Null);
    }
}

/// The bytes that record a template.
///
/// Upstream: `getPatch`.
pub(crate) fn encode(mut template: Value) -> Arc<str> {
    numbers_as_doubles(&mut template);
    if let Value::Object(members) = &mut template {
        members.insert("$patch".to_owned(), Value::from("replace"));
    }
    to_go_string(&json!({"spec": {"template": template}})).into()
}
