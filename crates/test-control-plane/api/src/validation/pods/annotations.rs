//! Rules of annotations that say something about a pod, and of the fields that replaced them.

use serde_json::{Value, json};

use super::spec::{containers, visit_containers};
use crate::go::{self, names};
use crate::members::text;
use crate::status::FieldError;
use crate::validation::engine::{Errors, Place};

const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(crate) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub(crate) const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub(crate) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST: &str = "localhost/";

/// Upstream: `ValidatePodSpecificAnnotations`.
pub(in crate::validation) fn pod_annotations(annotations: &Place<'_>, errors: &mut Errors) {
    let Some(pod) = annotations.context.pod else {
        return;
    };
    let path = annotations.path();
    let of = |key: &str| annotations.value.get(key).and_then(Value::as_str);
    let mut refuse = |key: &str, value: &str, detail: &str| {
        errors.push(FieldError::invalid(
            format!("{path}[{key}]"),
            &json!(value),
            detail,
        ));
    };
    if let Some(value) = of(MIRROR).filter(|_| text(pod.spec, "nodeName").is_empty()) {
        refuse(
            MIRROR,
            value,
            "must set spec.nodeName if mirror pod annotation is set",
        );
    }
    if let Some(value) = of(TOLERATIONS).filter(|value| !value.is_empty()) {
        tolerations(annotations, value, errors);
    }
    let was_valid = annotations
        .old
        .and_then(|old| old.get(DELETION_COST)?.as_str())
        .is_none_or(is_cost);
    if let Some(value) = of(DELETION_COST).filter(|value| was_valid && !is_cost(value)) {
        let field = format!("{path}[{DELETION_COST}]");
        let detail = "must be a 32bit integer";
        errors.push(FieldError::invalid(field, &json!(value), detail));
    }
    seccomp(annotations, errors);
    for (key, value) in annotations.entries() {
        let Some(name) = key.strip_prefix(APP_ARMOR) else {
            continue;
        };
        if !containers(pod.spec).any(|container| text(container, "name") == name) {
            errors.push(value.invalid_as(&json!(name), "container not found"));
        }
        let profile = value.text();
        let is_known = matches!(profile, "" | "runtime/default" | "unconfined");
        if !is_known && !profile.starts_with(LOCALHOST) {
            value.invalid_for(
                [format!("invalid AppArmor profile name: {profile:?}")],
                errors,
            );
        }
    }
}

fn tolerations(annotations: &Place<'_>, value: &str, errors: &mut Errors) {
    match serde_json::from_str::<Vec<Value>>(value) {
        Err(err) => {
            let found = go::json::syntax_error(value.as_bytes());
            let detail = found.unwrap_or_else(|| err.to_string());
            errors.push(annotations.invalid_as(&json!(TOLERATIONS), &detail));
        }
        Ok(found) => {
            let list = annotations.member_as("", TOLERATIONS);
            for (i, toleration) in found.iter().enumerate() {
                list.element(i, toleration).check("Toleration", errors);
            }
        }
    }
}

/// Returns true for a valid cost of a deletion.
fn is_cost(text: &str) -> bool {
    let starts_well = match text.as_bytes() {
        [b'-', ..] | [b'0'] => true,
        [first, ..] => (b'1'..=b'9').contains(first),
        [] => false,
    };
    starts_well && text.parse::<i32>().is_ok()
}

/// Upstream: `ValidateSeccompPodAnnotations`.
fn seccomp(annotations: &Place<'_>, errors: &mut Errors) {
    let of_containers = annotations
        .entries()
        .filter(|(key, _)| key.starts_with(SECCOMP));
    let of_pod = annotations.entries().filter(|(key, _)| *key == SECCOMP_POD);
    for (key, value) in of_pod.chain(of_containers) {
        let profile = value.text();
        let place = annotations.member_as("", key);
        let field = place.path();
        let mut refuse = |value: &str, why: &str| {
            errors.push(FieldError::invalid(&*field, &json!(value), why));
        };
        if let Some(path) = profile.strip_prefix(LOCALHOST) {
            for why in names::descending_path(path) {
                refuse(path, why);
            }
        } else if !matches!(profile, "runtime/default" | "docker/default" | "unconfined") {
            refuse(profile, "must be a valid seccomp profile");
        }
    }
}

/// Rejects profiles of fields and annotations that differ.
///
/// Upstream: `validateSeccompAnnotationsAndFields`,
/// `validateAppArmorAnnotationsAndFieldsMatchOnCreate`.
pub(in crate::validation) fn matching_profiles(pod: &Place<'_>, errors: &mut Errors) {
    let annotations = pod.member("metadata.annotations").value;
    let of = |key: String| annotations.get(key).and_then(Value::as_str);
    let spec = pod.member("spec");
    let context = spec.member("securityContext");
    let profile = context.member("seccompProfile");
    if let Some(annotation) = of(SECCOMP_POD.to_owned()) {
        matches(&profile, annotation, "seccomp", errors);
    }
    visit_containers(&spec, &mut |container| {
        let profile = container.member("securityContext.seccompProfile");
        if let Some(annotation) = of(format!("{SECCOMP}{}", container.text_of("name"))) {
            matches(&profile, annotation, "seccomp", errors);
        }
    });
    if spec.member("os").has("name", "windows") {
        return;
    }
    let of_pod = context.member("appArmorProfile");
    visit_containers(&spec, &mut |container| {
        let own = container.member("securityContext.appArmorProfile");
        let profile = match own.value {
            Value::Null => own.instead(of_pod.value),
            _ => own,
        };
        if let Some(annotation) = of(format!("{APP_ARMOR}{}", container.text_of("name"))) {
            matches(&profile, annotation, "apparmor", errors);
        }
    });
}

fn matches(profile: &Place<'_>, annotation: &str, noun: &str, errors: &mut Errors) {
    let is_same = match profile.text_of("type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || noun == "seccomp" && annotation == "docker/default"
        }
        "Localhost" => match annotation.strip_prefix(LOCALHOST) {
            None => false,
            Some(found) => {
                let path = profile.member("localhostProfile");
                if path.value.as_str() != Some(found) {
                    let detail = format!("{noun} profile in annotation and field must match");
                    errors.push(path.forbidden(&detail));
                }
                true
            }
        },
        _ => true,
    };
    if !is_same {
        let detail = format!("{noun} type in annotation and field must match");
        errors.push(profile.member("type").forbidden(&detail));
    }
}

/// Returns the profile that an `AppArmor` annotation means.
///
/// Upstream: `ApparmorFieldForAnnotation`.
pub(crate) fn app_armor_profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let name = annotation.strip_prefix(LOCALHOST)?;
            let profile = json!({"localhostProfile": name, "type": "Localhost"});
            Some(profile).filter(|_| !name.is_empty())
        }
    }
}

/// Returns the warning about an `AppArmor` annotation; `path` comes before the metadata.
pub(crate) fn app_armor_warning(path: &str, key: &str) -> String {
    format!(
        "{path}metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" \
         field instead"
    )
}

/// Rejects changes of annotations that a pod keeps.
///
/// Upstream: `ValidatePodSpecificAnnotationUpdates`.
pub(in crate::validation) fn kept_annotations(annotations: &Place<'_>, errors: &mut Errors) {
    let old = annotations.old.unwrap_or(&Value::Null);
    let nouns = |key: &str| match key {
        MIRROR => Some("mirror pod annotation"),
        key if key.starts_with(APP_ARMOR) => Some("AppArmor annotations"),
        _ => None,
    };
    let path = annotations.path();
    let mut refuse = |key: &str, verb: &str| {
        if let Some(noun) = nouns(key) {
            let detail = format!("may not {verb} {noun}");
            errors.push(FieldError::forbidden(format!("{path}[{key}]"), &detail));
        }
    };
    for (key, value) in old.as_object().into_iter().flatten() {
        if annotations.value.get(key) != Some(value) {
            refuse(key, "remove or update");
        }
    }
    for (key, _) in annotations
        .entries()
        .filter(|(key, _)| old.get(*key).is_none())
    {
        refuse(key, "add");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_integers_in_their_shortest_form() {
        for text in ["0", "-1", "2147483647", "12"] {
            assert!(is_cost(text), "{text}");
        }
        for text in ["", "+1", "08", "1.5", "2147483648", "x", "-"] {
            assert!(!is_cost(text), "{text}");
        }
    }
}
