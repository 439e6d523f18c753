//! From recorded data back to a set.

use kube_apimachinery::json::parse;
use kube_apimachinery::schema::{UnknownMembers, normalize};
use kube_apimachinery::strategic_merge;
use serde_json::{Value, json};
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
    let data = parse(&revision.data).map_err(|_| Error::InvalidDocument)?;
    let mut data = match data {
        Value::Null => return Ok(None),
        Value::Object(members) => members,
        _ => return Err(Error::InvalidDocument),
    };
    let Some(mut template) = data
        .get_mut("spec")
        .and_then(|spec| spec.get_mut("template"))
        .map(Value::take)
    else {
        return Ok(None);
    };
    if template.is_null() {
        return Ok(Some(json!({})));
    }
    if template
        .get(DIRECTIVE)
        .is_some_and(|directive| directive == "replace")
    {
        template
            .as_object_mut()
            .map(|members| members.remove(DIRECTIVE));
        return Ok(Some(template));
    }
    let merged = strategic_merge::apply(TEMPLATE_TYPE, &set.spec.template.to_value()?, &template);
    merged.map(Some).map_err(|source| Error::Merge {
        revision: revision.key(),
        source,
    })
}
