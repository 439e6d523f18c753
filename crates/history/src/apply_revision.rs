//! Decoding of recorded data back into a set.

use kube_apimachinery::json;
use kube_apimachinery::schema::{DecodeError, UnknownMembers, normalize};
use kube_apimachinery::strategic_merge::{self, StrategicMergeError};
use serde_json::{Map, Value, json};
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::{AppliedRevision, PodTemplate, StatefulSet};

use crate::data::{DIRECTIVE, TEMPLATE_PATH, TEMPLATE_TYPE};
use crate::error::Error;

#[cfg(test)]
mod tests;

/// Returns the set with the template that `revision` recorded; all other fields keep their present
/// values.
///
/// Unknown members of the recorded template survive. A revision without a template leaves the set
/// unchanged.
///
/// # Errors
///
/// The recorded data isn't a JSON object, or a value doesn't fit its type.
///
/// Upstream: `ApplyRevision`.
pub fn apply_revision(
    set: &StatefulSet,
    revision: &ControllerRevision,
) -> Result<StatefulSet, Error> {
    applied_revision(set, revision).map(|applied| applied.on(set))
}

/// Returns the parts of the set that the revision replaces. They depend on the set's template alone.
///
/// # Errors
///
/// As of [`apply_revision`].
pub fn applied_revision(
    set: &StatefulSet,
    revision: &ControllerRevision,
) -> Result<AppliedRevision, Error> {
    let Recorded {
        template,
        replaces_spec,
    } = recorded_template(set, revision)?;
    let normalized = template.map(|template| {
        let keep = UnknownMembers::Keep;
        normalize(TEMPLATE_TYPE, &template, keep, TEMPLATE_PATH)
    });
    Ok(AppliedRevision {
        template: normalized
            .transpose()?
            .as_ref()
            .map(PodTemplate::from_value),
        replaces_spec,
    })
}

/// Decoded contents of a revision.
#[derive(Default)]
pub(crate) struct Recorded {
    /// The recorded template, if any.
    pub(crate) template: Option<Value>,
    /// True if the patch replaces or deletes the whole spec or the whole set.
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

/// Decodes a revision. A template without the replace directive, as other tools may record it, is
/// merged into the set's template.
///
/// # Errors
///
/// The data isn't a JSON object, or the merge fails.
pub(crate) fn recorded_template(
    set: &StatefulSet,
    revision: &ControllerRevision,
) -> Result<Recorded, Error> {
    if revision.data.is_empty() {
        return Ok(Recorded::default());
    }
    let mut data = json::parse(&revision.data.to_str()).map_err(|_| Error::InvalidDocument)?;
    // Go converts these numbers between merging and decoding, then decodes integers from them.
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
        // Decoding fails with the reference's error.
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

/// Returns the template of a spec that replaces the set's spec.
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

/// Effect of a patch on the object that it patches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Replace,
    Delete,
}

/// Removes the directive from a patch; fails with the text of an unknown directive.
fn take_directive(patch: &mut Map<String, Value>) -> Result<Option<Directive>, String> {
    match patch.remove(DIRECTIVE) {
        None => Ok(None),
        Some(Value::String(text)) if text == "replace" => Ok(Some(Directive::Replace)),
        Some(Value::String(text)) if text == "delete" => Ok(Some(Directive::Delete)),
        Some(Value::String(text)) => Err(text),
        Some(other) => Err(other.to_string()),
    }
}

/// Go's decoding error for a spec that isn't an object.
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
