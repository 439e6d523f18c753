//! From recorded data back to a set.

use kube_apimachinery::json;
use kube_apimachinery::schema::{DecodeError, UnknownMembers, normalize};
use kube_apimachinery::strategic_merge::{self, StrategicMergeError};
use serde_json::{Map, Value, json};
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::{PodTemplate, StatefulSet, UpdateStrategy};

use crate::data::{DIRECTIVE, TEMPLATE_PATH, TEMPLATE_TYPE};
use crate::error::Error;

#[cfg(test)]
mod tests;

/// The set as it was when `revision` was recorded: everything as it is now, but for the template.
///
/// Members of the recorded template that no type knows survive. A revision that records nothing
/// leaves the set as it is.
///
/// # Errors
///
/// The recorded data isn't a JSON object, or has a value that its type can't hold.
///
/// Upstream: `ApplyRevision`.
pub fn apply_revision(
    set: &StatefulSet,
    revision: &ControllerRevision,
) -> Result<StatefulSet, Error> {
    let Recorded {
        template,
        replaces_spec,
    } = recorded_template(set, revision)?;
    let Some(template) = template else {
        return Ok(set.clone());
    };
    let template = normalize(
        TEMPLATE_TYPE,
        &template,
        UnknownMembers::Keep,
        TEMPLATE_PATH,
    )?;
    let mut applied = set.with_template(PodTemplate::from_value(&template));
    if replaces_spec {
        // Nothing is left that would ask for pods of this revision.
        applied.spec.update_strategy = UpdateStrategy::default();
    }
    Ok(applied)
}

/// What a revision stands for.
#[derive(Default)]
pub(crate) struct Recorded {
    /// The template; none where it records none.
    pub(crate) template: Option<Value>,
    /// Whether it replaces, or deletes, the whole spec or the whole set.
    replaces_spec: bool,
}

impl From<Value> for Recorded {
    fn from(template: Value) -> Self {
        Self {
            template: Some(template),
            replaces_spec: false,
        }
    }
}

/// What a revision stands for. A template that isn't marked as a replacement, as other tools may
/// record it, is merged into the set's.
///
/// # Errors
///
/// The data isn't a JSON object, or can't be merged.
pub(crate) fn recorded_template(
    set: &StatefulSet,
    revision: &ControllerRevision,
) -> Result<Recorded, Error> {
    if revision.data.is_empty() {
        return Ok(Recorded::default());
    }
    let mut data = json::parse(&revision.data.to_str()).map_err(|_| Error::InvalidDocument)?;
    // Go writes them so between merging and decoding, and decodes integers from them.
    json::whole_numbers_as_integers(&mut data);
    let mut data = match data {
        Value::Null => return Ok(Recorded::default()),
        Value::Object(members) => members,
        _ => return Err(Error::InvalidDocument),
    };
    let unknown = |directive| Error::Merge {
        revision: revision.key(),
        source: StrategicMergeError::UnknownDirective(directive),
    };
    let set_directive = take_directive(&mut data).map_err(unknown)?;
    let mut spec = match data.remove("spec") {
        Some(Value::Object(spec)) => spec,
        Some(Value::Null) => return Ok(json!({}).into()),
        Some(other) => return Err(wrong_spec(&other).into()),
        None => Map::new(),
    };
    let spec_directive = take_directive(&mut spec).map_err(unknown)?;
    let is_deleted = [set_directive, spec_directive].contains(&Some(Directive::Delete));
    let is_replaced = is_deleted || set_directive.is_some() || spec_directive.is_some();
    if is_replaced {
        let template = spec.remove("template").filter(|_| !is_deleted);
        return Ok(Recorded {
            template: Some(replaced_template(template, unknown)?),
            replaces_spec: true,
        });
    }
    let mut template = match spec.remove("template") {
        Some(Value::Null) => return Ok(json!({}).into()),
        Some(template) => template,
        None => return Ok(Recorded::default()),
    };
    let Some(members) = template.as_object_mut() else {
        // Decoding it fails as it does for the reference.
        return Ok(template.into());
    };
    match take_directive(members).map_err(unknown)? {
        Some(Directive::Delete) => return Ok(json!({}).into()),
        Some(Directive::Replace) => return Ok(template.into()),
        None => {}
    }
    let merged = strategic_merge::apply(TEMPLATE_TYPE, &set.spec.template.to_value()?, &template);
    merged.map(Recorded::from).map_err(|source| Error::Merge {
        revision: revision.key(),
        source,
    })
}

/// The template of a spec that is replaced as a whole.
fn replaced_template(
    template: Option<Value>,
    unknown: impl Fn(String) -> Error,
) -> Result<Value, Error> {
    let mut template = template
        .filter(|it| !it.is_null())
        .unwrap_or_else(|| json!({}));
    if let Some(members) = template.as_object_mut() {
        take_directive(members).map_err(unknown)?;
    }
    Ok(template)
}

/// What a patch does with the object in whose place it stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Replace,
    Delete,
}

/// Takes the directive out of a patch; the text of one that is none.
fn take_directive(patch: &mut Map<String, Value>) -> Result<Option<Directive>, String> {
    match patch.remove(DIRECTIVE) {
        None => Ok(None),
        Some(Value::String(text)) if text == "replace" => Ok(Some(Directive::Replace)),
        Some(Value::String(text)) if text == "delete" => Ok(Some(Directive::Delete)),
        Some(Value::String(text)) => Err(text),
        Some(other) => Err(other.to_string()),
    }
}

/// What Go's decoder says of a spec that isn't an object.
fn wrong_spec(found: &Value) -> DecodeError {
    let value = match found {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    DecodeError::Mismatch {
        value: value.to_owned(),
        target: "struct field StatefulSet.spec".to_owned(),
        go_type: "v1.StatefulSetSpec".to_owned(),
    }
}
