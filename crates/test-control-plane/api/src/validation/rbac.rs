//! Rules of roles and role bindings.

use serde_json::{Value, json};

use super::{FieldError, Subject, names};
use crate::members::list_at;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    for (i, rule) in list_at(&subject.new.value, "/rules").enumerate() {
        let path = format!("rules[{i}]");
        let is_empty = |member: &str| list_at(rule, &format!("/{member}")).next().is_none();
        if is_empty("verbs") {
            errors.push(FieldError::required(
                format!("{path}.verbs"),
                "verbs must contain at least one value",
            ));
        }
        if !is_empty("nonResourceURLs") {
            let value = rule.get("nonResourceURLs").unwrap_or(&Value::Null);
            let field = format!("{path}.nonResourceURLs");
            if subject.kind.namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(&*field, value, detail));
            }
            if !(is_empty("apiGroups") && is_empty("resources") && is_empty("resourceNames")) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(field, value, detail));
            }
            continue;
        }
        if is_empty("apiGroups") {
            errors.push(FieldError::required(
                format!("{path}.apiGroups"),
                "resource rules must supply at least one api group",
            ));
        }
        if is_empty("resources") {
            errors.push(FieldError::required(
                format!("{path}.resources"),
                "resource rules must supply at least one resource",
            ));
        }
    }
}

pub(super) fn binding(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let value = &subject.new.value;
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let group = text("/roleRef/apiGroup");
    if group != GROUP {
        errors.push(FieldError::not_supported(
            "roleRef.apiGroup",
            &json!(group),
            &[GROUP],
        ));
    }
    let kinds: &[&str] = if subject.kind.namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    let kind = text("/roleRef/kind");
    if !kinds.contains(&kind) {
        errors.push(FieldError::not_supported(
            "roleRef.kind",
            &json!(kind),
            kinds,
        ));
    }
    let name = text("/roleRef/name");
    if name.is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for message in names::path_segment(name) {
        errors.push(FieldError::invalid("roleRef.name", &json!(name), message));
    }
    for (i, found) in list_at(value, "/subjects").enumerate() {
        who(
            found,
            &format!("subjects[{i}]"),
            subject.kind.namespaced,
            errors,
        );
    }
    let Some(old) = subject.old else {
        return;
    };
    if value.get("roleRef") != old.value.get("roleRef") {
        let printed = json!({"APIGroup": group, "Kind": kind, "Name": name});
        errors.push(FieldError::invalid(
            "roleRef",
            &printed,
            "cannot change roleRef",
        ));
    }
}

/// Upstream: `ValidateRoleBindingSubject`.
fn who(subject: &Value, path: &str, namespaced: bool, errors: &mut Vec<FieldError>) {
    let text = |member: &str| subject.get(member).and_then(Value::as_str).unwrap_or("");
    let name = text("name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let group = json!(text("apiGroup"));
    let mut group_of = |wanted: &'static str| {
        if group != wanted {
            let field = format!("{path}.apiGroup");
            errors.push(FieldError::not_supported(field, &group, &[wanted]));
        }
    };
    match text("kind") {
        "ServiceAccount" => {
            group_of("");
            if !name.is_empty() {
                for message in names::dns_subdomain(name) {
                    let field = format!("{path}.name");
                    errors.push(FieldError::invalid(field, &json!(name), message));
                }
            }
            if !namespaced && text("namespace").is_empty() {
                errors.push(FieldError::required(format!("{path}.namespace"), ""));
            }
        }
        "User" | "Group" => group_of(GROUP),
        other => errors.push(FieldError::not_supported(
            format!("{path}.kind"),
            &json!(other),
            &["ServiceAccount", "User", "Group"],
        )),
    }
}
