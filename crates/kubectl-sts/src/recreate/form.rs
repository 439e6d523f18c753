//! The forms of a set: the values of its immutable fields.

use kube_apimachinery::stateful_set::MUTABLE_SPEC_FIELDS;
use serde_json::{Map, Value};

use super::step::Form;
use crate::diff::{Change, changes};

/// Returns the differences in immutable fields.
pub(super) fn immutable_changes(old: &Value, new: &Value) -> Vec<Change> {
    changes(&immutable(old), &immutable(new))
}

/// Returns the form of a set; none if a field that tells the forms apart has a third value.
pub(super) fn form_of(set: &Value, old: &Value, new: &Value) -> Option<Form> {
    let apart = immutable_changes(old, new);
    let is = |form: &Value| {
        let others = immutable_changes(form, set);
        !others
            .iter()
            .any(|other| apart.iter().any(|change| concerns(other, change)))
    };
    if is(new) {
        Some(Form::New)
    } else if is(old) {
        Some(Form::Old)
    } else {
        None
    }
}

/// Reports whether a difference from a form concerns a field that tells the forms apart. The server
/// may have added fields below it.
fn concerns(other: &Change, change: &Change) -> bool {
    let is_below = |path: &str, above: &str| {
        let rest = path.strip_prefix(above);
        rest.is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    let is_added_below = other.old.is_none() && is_below(&other.path, &change.path);
    let is_near = other.path == change.path
        || is_below(&other.path, &change.path)
        || is_below(&change.path, &other.path);
    is_near && !is_added_below
}

fn immutable(set: &Value) -> Value {
    let spec = set.get("spec").and_then(Value::as_object);
    let spec = spec.into_iter().flatten();
    let fixed = spec.filter(|(field, _)| !MUTABLE_SPEC_FIELDS.contains(&field.as_str()));
    let fixed: Map<String, Value> = fixed
        .map(|(field, value)| (field.clone(), without_status(value)))
        .collect();
    serde_json::json!({"spec": fixed})
}

/// Claim templates without their status, which has no meaning.
fn without_status(value: &Value) -> Value {
    let mut value = value.clone();
    for template in value.as_array_mut().into_iter().flatten() {
        if let Some(fields) = template.as_object_mut() {
            fields.remove("status");
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(service: &str, claims: &Value) -> Value {
        json!({"spec": {
            "serviceName": service, "replicas": 3, "volumeClaimTemplates": claims,
        }})
    }

    fn claim(name: &str, size: &str) -> Value {
        json!({"metadata": {"name": name},
            "spec": {"resources": {"requests": {"storage": size}}}})
    }

    #[test]
    fn forms_differ_in_immutable_fields_alone() {
        let old = set("web", &json!([claim("data", "1Gi")]));
        let mut new = set("db", &json!([claim("data", "2Gi")]));
        new["spec"]["replicas"] = json!(5);
        let paths: Vec<String> = immutable_changes(&old, &new)
            .into_iter()
            .map(|change| change.path)
            .collect();
        let size = "spec.volumeClaimTemplates[data].spec.resources.requests.storage";
        assert_eq!(paths, ["spec.serviceName", size]);
        assert_eq!(form_of(&old, &old, &new), Some(Form::Old));
        new["spec"]["replicas"] = json!(7);
        assert_eq!(form_of(&new, &old, &new), Some(Form::New));
        let third = set("db", &json!([claim("data", "3Gi")]));
        assert_eq!(form_of(&third, &old, &new), None);
        let half = set("db", &json!([claim("data", "1Gi")]));
        assert_eq!(form_of(&half, &old, &new), None);
    }

    #[test]
    fn fields_that_the_server_adds_leave_the_form() {
        let old = set("web", &json!([]));
        let new = set("web", &json!([claim("data", "1Gi")]));
        let mut stored = new.clone();
        stored["spec"]["podManagementPolicy"] = json!("OrderedReady");
        let template = &mut stored["spec"]["volumeClaimTemplates"][0];
        template["spec"]["volumeMode"] = json!("Filesystem");
        template["status"] = json!({"phase": "Pending"});
        assert_eq!(form_of(&stored, &old, &new), Some(Form::New));
        assert_eq!(form_of(&old, &old, &new), Some(Form::Old));
        assert_eq!(form_of(&stored, &new, &old), Some(Form::Old));
        assert_eq!(form_of(&old, &new, &old), Some(Form::New));
    }
}
