//! Decoding of recorded data back into a set.

use std::sync::Arc;

use kube_apimachinery::json;
use kube_apimachinery::schema::{UnknownMembers, normalize, normalize_owned};
use kube_apimachinery::strategic_merge;
use serde_json::{Value, json};
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::stateful_set::{AppliedRevision, PodTemplate, StatefulSet};

use crate::data::{TEMPLATE_PATH, TEMPLATE_TYPE};
use crate::error::Error;

#[cfg(test)]
mod tests;

/// Returns the set with the template that `revision` recorded; all other fields keep their present
/// values.
///
/// Unknown fields of the recorded template survive. A revision without a template leaves the set
/// unchanged.
///
/// # Errors
///
/// The recorded data isn't a JSON object, or a value doesn't fit its type.
///
/// Upstream: `ApplyRevision`.
pub fn apply_revision(
    set: &StatefulSet,
    revision: &Arc<ControllerRevision>,
) -> Result<StatefulSet, Error> {
    let memo = set.spec.template.memo();
    let applied = memo.applied(revision, || applied_revision(set, revision))?;
    Ok(set.with_revision(&applied))
}

/// Returns the parts of the set that the revision replaces. They depend on the set's template alone.
fn applied_revision(
    set: &StatefulSet,
    revision: &ControllerRevision,
) -> Result<AppliedRevision, Error> {
    let (recorded, replaces_strategy) = recorded_template(set, revision)?;
    let keep = UnknownMembers::Keep;
    let normalized = |template| normalize_owned(TEMPLATE_TYPE, template, keep, TEMPLATE_PATH);
    let normalized = recorded.map(normalized).transpose()?;
    Ok(AppliedRevision {
        template: normalized.as_ref().map(PodTemplate::from_value),
        replaces_strategy,
    })
}

/// Decodes a revision. Returns the recorded template, if any, and true if the revision replaces or
/// deletes the update strategy, alone or with the whole spec or set. A template without the replace
/// directive, as other tools may record it, is merged into the set's template.
///
/// # Errors
///
/// The data isn't a JSON object, or the merge fails.
pub(crate) fn recorded_template(
    set: &StatefulSet,
    revision: &ControllerRevision,
) -> Result<(Option<Value>, bool), Error> {
    if revision.data.is_empty() {
        return Ok((None, false));
    }
    let mut data = json::parse(&revision.data.to_str()).map_err(|_| Error::InvalidDocument)?;
    // Go converts these numbers between merging and decoding, then decodes integers from them.
    json::whole_numbers_as_integers(&mut data);
    match data {
        Value::Null => return Ok((None, false)),
        Value::Object(_) => {}
        _ => return Err(Error::InvalidDocument),
    }
    let has = |pointer| data.pointer(pointer).is_some();
    let directives = ["/$patch", "/spec/$patch", "/spec/template/$patch"];
    let template = if directives.into_iter().any(has) {
        // The merge replaces the template, or fails.
        json!({})
    } else if has("/spec/template")
        || has("/spec/updateStrategy")
        || data.get("spec").is_some_and(|spec| !spec.is_object())
    {
        set.spec.template.to_value()?
    } else {
        return Ok((None, false));
    };
    let strategy = json!({"type": "RollingUpdate"});
    let present = json!({"spec": {"template": template, "updateStrategy": strategy}});
    let merged = strategic_merge::apply("StatefulSet", &present, &data);
    let mut merged = merged.map_err(|source| Error::Merge {
        revision: revision.key(),
        source,
    })?;
    if merged.get("spec").is_some_and(|spec| !spec.is_object()) {
        // Fails with upstream's error.
        normalize("StatefulSet", &merged, UnknownMembers::Keep, "")?;
    }
    let replaces_strategy = merged.pointer("/spec/updateStrategy/type") != strategy.get("type");
    let template = merged.pointer_mut("/spec/template").map(Value::take);
    Ok((
        Some(template.unwrap_or_else(|| json!({}))),
        replaces_strategy,
    ))
}
