//! Admission policies, their bindings, and the rules of webhooks, without their expressions.
//!
//! Upstream: `pkg/apis/admissionregistration/validation`

use std::collections::BTreeSet;

use serde_json::json;

use super::engine::{Errors, Place};
use crate::go::names;
use crate::status::FieldError;

/// The operations of rules.
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// The scopes of rules.
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// The actions of bindings.
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

/// Upstream: `validateNamedRuleWithOperations`
pub(super) fn named_rule(rule: &Place<'_>, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for name in rule.member("resourceNames").elements() {
        name.invalid_for(names::path_segment(name.text()), errors);
        if !known.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
    rule_with_operations(rule, errors);
}

/// Reports the operations whose requests have nothing to change.
pub(super) fn mutating_operations(rules: &Place<'_>, errors: &mut Errors) {
    let allowed: Vec<&str> = OPERATIONS
        .into_iter()
        .filter(|name| *name != "DELETE")
        .collect();
    let field = format!("{}.operations", rules.path());
    for rule in rules.elements() {
        for operation in rule.member("operations").elements() {
            if !allowed.contains(&operation.text()) {
                let value = json!(operation.text());
                errors.push(FieldError::not_supported(field.clone(), &value, &allowed));
            }
        }
    }
}

/// Upstream: `validateRuleWithOperations`
pub(super) fn rule_with_operations(rule: &Place<'_>, errors: &mut Errors) {
    let operations = rule.member("operations");
    not_empty(&operations, errors);
    alone(&operations, "*", "operations", errors);
    for operation in operations.elements() {
        if !OPERATIONS.contains(&operation.text()) {
            errors.push(operation.not_supported(&OPERATIONS));
        }
    }
    let groups = rule.member("apiGroups");
    not_empty(&groups, errors);
    alone(&groups, "*", "API groups", errors);
    let versions = rule.member("apiVersions");
    not_empty(&versions, errors);
    alone(&versions, "*", "API versions", errors);
    for version in versions.elements() {
        not_empty(&version, errors);
    }
    resources(&rule.member("resources"), errors);
    let scope = rule.member("scope");
    if scope.is_present() && !SCOPES.contains(&scope.text()) {
        errors.push(scope.not_supported(&SCOPES));
    }
}

fn not_empty(value: &Place<'_>, errors: &mut Errors) {
    if value.is_empty() {
        errors.push(value.required(""));
    }
}

/// Reports other elements next to a wildcard.
fn alone(list: &Place<'_>, wildcard: &str, noun: &str, errors: &mut Errors) {
    let found = list.texts();
    if found.len() > 1 && found.contains(&wildcard) {
        let detail = format!("if '{wildcard}' is present, must not specify other {noun}");
        errors.push(list.invalid_as(&json!(found), &detail));
    }
}

/// Upstream: `validateResources`
fn resources(list: &Place<'_>, errors: &mut Errors) {
    not_empty(list, errors);
    let mut whole = BTreeSet::new();
    let mut parts = BTreeSet::new();
    let mut has_plain = false;
    for place in list.elements() {
        let text = place.text();
        if text.is_empty() {
            errors.push(place.required(""));
            continue;
        }
        let Some((resource, part)) = text.split_once('/') else {
            // As in upstream, the last one counts.
            has_plain = text != "*";
            continue;
        };
        if whole.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            errors.push(place.invalid(&detail));
        }
        if parts.contains(part) {
            let detail = format!("if '*/{part}' is present, must not specify {text}");
            errors.push(place.invalid(&detail));
        }
        if part == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            parts.insert(part);
        }
    }
    alone(list, "*/*", "resources", errors);
    let found = list.texts();
    if found.contains(&"*") && has_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(list.invalid_as(&json!(found), detail));
    }
}

/// Upstream: `validateParamKind`
pub(super) fn param_kind(of: &Place<'_>, errors: &mut Errors) {
    let version = of.member("apiVersion");
    match version.text().split('/').collect::<Vec<_>>().as_slice() {
        _ if version.is_empty() => errors.push(version.required("")),
        [name] => group_version(&version, "", name, errors),
        [group, name] => group_version(&version, group, name, errors),
        _ => {
            let detail = format!("unexpected GroupVersion string: {}", version.text());
            errors.push(version.invalid(&detail));
        }
    }
    let kind = of.member("kind");
    if kind.is_empty() {
        errors.push(kind.required(""));
        return;
    }
    let wrong = names::letter_label(&kind.text().to_lowercase());
    if !wrong.is_empty() {
        let detail = format!(
            "may have mixed case, but should otherwise match: {}",
            wrong.join(",")
        );
        errors.push(kind.invalid(&detail));
    }
}

fn group_version(of: &Place<'_>, group: &str, version: &str, errors: &mut Errors) {
    let wrong = |text: &str, found: Vec<&str>| {
        let detail = found.join(",");
        let error = of.invalid_as(&json!(text), &detail);
        (!found.is_empty()).then_some(error)
    };
    if !group.is_empty() {
        errors.extend(wrong(group, names::dns_subdomain(group)));
    }
    if version.is_empty() {
        errors.push(of.invalid("version must be specified"));
    } else {
        errors.extend(wrong(version, names::letter_label(version)));
    }
}

/// Upstream: `validateParamRef`
pub(super) fn param_reference(of: &Place<'_>, errors: &mut Errors) {
    let (name, selector) = (of.member("name"), of.member("selector"));
    let is_both = !name.is_empty() && selector.is_present();
    let exclusive = "name and selector are mutually exclusive";
    if !name.is_empty() {
        name.invalid_for(names::path_segment(name.text()), errors);
        if is_both {
            errors.push(name.forbidden(exclusive));
        }
    }
    if selector.is_present() {
        selector.check("LabelSelector", errors);
        if is_both {
            errors.push(selector.forbidden(exclusive));
        }
    }
    if name.is_empty() && !selector.is_present() {
        errors.push(of.required("one of name or selector must be specified"));
    }
    let action = of.member("parameterNotFoundAction");
    match action.text() {
        "" => errors.push(action.required("")),
        "Deny" | "Allow" => {}
        _ => errors.push(action.not_supported(&["Deny", "Allow"])),
    }
}

/// Upstream: `validateValidationActions`
pub(super) fn validation_actions(list: &Place<'_>, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for action in list.elements() {
        if !ACTIONS.contains(&action.text()) {
            errors.push(action.not_supported(&ACTIONS));
        }
        if !known.insert(action.text()) {
            errors.push(action.duplicate());
        }
    }
    if known.contains("Deny") && known.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        let found = json!(list.texts());
        errors.push(list.invalid_as(&found, detail));
    }
    if known.is_empty() {
        errors.push(list.required("at least one validation action is required"));
    }
}

/// Upstream: `validateFieldRef`
pub(super) fn field_reference(of: &Place<'_>, errors: &mut Errors) {
    if of.text().trim().is_empty() {
        errors.push(of.required(""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::tests::fields;

    #[test]
    fn wildcards_stand_alone() {
        let rule = |resources: &[&str]| {
            json!({
                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": resources,
            })
        };
        for (resources, expected) in [
            (&["pods", "pods/status"][..], &[""; 0][..]),
            (&["*", "pods/status"], &[]),
            (&["*", "pods"], &["x.resources"]),
            (&["*/*", "pods"], &["x.resources"]),
            (&["pods/*", "pods/log"], &["x.resources[1]"]),
            (&["*/log", "pods/log"], &["x.resources[1]"]),
            (&[], &["x.resources"]),
            (&[""], &["x.resources[0]"]),
        ] {
            assert_eq!(
                fields(named_rule, &rule(resources)),
                expected,
                "{resources:?}"
            );
        }
    }

    #[test]
    fn parameters_have_a_group_version_and_kind() {
        let kind = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind});
        assert_eq!(fields(param_kind, &kind("v1", "ConfigMap")), [""; 0]);
        assert_eq!(fields(param_kind, &kind("a/b/c", "K")), ["x.apiVersion"]);
        assert_eq!(fields(param_kind, &kind("a/", "K")), ["x.apiVersion"]);
        assert_eq!(
            fields(param_kind, &kind("", "")),
            ["x.apiVersion", "x.kind"]
        );
        assert_eq!(fields(param_kind, &kind("v1", "-")), ["x.kind"]);
    }

    #[test]
    fn references_name_or_select_parameters() {
        let deny = |extra| json!({"name": extra, "parameterNotFoundAction": "Deny"});
        assert_eq!(fields(param_reference, &deny("a")), [""; 0]);
        assert_eq!(fields(param_reference, &deny("")), ["x"]);
        let both = json!({"name": "a", "selector": {}});
        let expected = ["x.name", "x.selector", "x.parameterNotFoundAction"];
        assert_eq!(fields(param_reference, &both), expected);
    }
}
