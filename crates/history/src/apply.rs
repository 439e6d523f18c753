//! From recorded data back to a set.

use kube_apimachinery::json;
use kube_apimachinery::schema::{DecodeError, UnknownMembers, normalize};
use kube_apimachinery::strategic_merge::{self, StrategicMergeError};
use serde_json::{Map, Value, json};
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::{PodTemplate, StatefulSet};

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
    let Some(template) = recorded_template(set, revision)? else {
        return Ok(set.clone());
    };
    let template = normalize(
        TEMPLATE_TYPE,
        &template,
        UnknownMembers::Keep,
        TEMPLATE_PATH,
    )?;
    Ok(set.with_template(PodTemplate::from_value(&template)))
}

/// The template that a revision stands for; none where it records none. A template that isn't
/// marked as a replacement, as other tools may record it, is merged into the set's.
///
/// # Errors
///
/// The data isn't a JSON object, or can't be merged.
pub(crate) fn recorded_template(
    set: &StatefulSet,
    revision: &ControllerRevision,
) -> Result<Option<Value>, Error> {
    if revision.data.is_empty() {
        return Ok(None);
    }
    let data = json::parse(&revision.data).map_err(|_| Error::InvalidDocument)?;
    let mut data = match data {
        Value::Null => return Ok(None),
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
        Some(Value::Null) => return Ok(Some(json!({}))),
        Some(other) => return Err(wrong_spec(&other).into()),
        None => Map::new(),
    };
    let spec_directive = take_directive(&mut spec).map_err(unknown)?;
    let is_deleted = [set_directive, spec_directive].contains(&Some(Directive::Delete));
    let is_replaced = is_deleted || set_directive.is_some() || spec_directive.is_some();
    let mut template = match spec.remove("template") {
        Some(template) if !is_deleted && !template.is_null() => template,
        None if !is_replaced => return Ok(None),
        _ => return Ok(Some(json!({}))),
    };
    let Some(members) = template.as_object_mut() else {
        // Decoding it fails as it does for the reference.
        return Ok(Some(template));
    };
    match take_directive(members).map_err(unknown)? {
        Some(Directive::Delete) if !is_replaced => return Ok(Some(json!({}))),
        None if !is_replaced => {}
        _ => return Ok(Some(template)),
    }
    let merged = strategic_merge::apply(TEMPLATE_TYPE, &set.spec.template.to_value()?, &template);
    merged.map(Some).map_err(|source| Error::Merge {
        revision: revision.key(),
        source,
    })
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
