//! Rules of node and pod affinity.

use serde_json::{Value, json};

use super::scheduling::topology_key;
use super::{Errors, list, number, qualified, text};
use crate::validation::{FieldError, at};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Upstream: `validateAffinity`.
pub(super) fn validate(spec: &Value, path: &str, errors: &mut Errors) {
    if let Some(nodes) = at(spec, "/affinity/nodeAffinity") {
        of_nodes(nodes, &format!("{path}.affinity.nodeAffinity"), errors);
    }
    for member in ["podAffinity", "podAntiAffinity"] {
        if let Some(pods) = at(spec, &format!("/affinity/{member}")) {
            of_pods(pods, &format!("{path}.affinity.{member}"), errors);
        }
    }
}

fn of_nodes(affinity: &Value, path: &str, errors: &mut Errors) {
    if let Some(selector) = at(affinity, &format!("/{REQUIRED}")) {
        let field = format!("{path}.{REQUIRED}.nodeSelectorTerms");
        if list(selector, "nodeSelectorTerms").next().is_none() {
            let detail = "must have at least one node selector term";
            errors.push(FieldError::required(field.as_str(), detail));
        }
        for (i, term) in list(selector, "nodeSelectorTerms").enumerate() {
            node_term(term, &format!("{field}[{i}]"), errors);
        }
    }
    for (i, term) in list(affinity, PREFERRED).enumerate() {
        let path = format!("{path}.{PREFERRED}[{i}]");
        weight(term, &path, errors);
        if let Some(preference) = at(term, "/preference") {
            node_term(preference, &format!("{path}.preference"), errors);
        }
    }
}

/// Upstream: `ValidateNodeSelectorTerm`.
fn node_term(term: &Value, path: &str, errors: &mut Errors) {
    for (i, expression) in list(term, "matchExpressions").enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        let count = list(expression, "values").count();
        let values = format!("{path}.values");
        match text(expression, "operator") {
            "In" | "NotIn" if count == 0 => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(values, detail));
            }
            "Exists" | "DoesNotExist" if count > 0 => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(values, detail));
            }
            "Gt" | "Lt" if count != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(FieldError::required(values, detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                let field = format!("{path}.operator");
                let detail = "not a valid selector operator";
                errors.push(FieldError::invalid(field, &json!(other), detail));
            }
        }
        qualified(text(expression, "key"), &format!("{path}.key"), errors);
    }
}

fn of_pods(affinity: &Value, path: &str, errors: &mut Errors) {
    for (i, term) in list(affinity, REQUIRED).enumerate() {
        topology_key(term, &format!("{path}.{REQUIRED}[{i}]"), errors);
    }
    for (i, term) in list(affinity, PREFERRED).enumerate() {
        let path = format!("{path}.{PREFERRED}[{i}]");
        weight(term, &path, errors);
        let term = term.get("podAffinityTerm").unwrap_or(&Value::Null);
        topology_key(term, &format!("{path}.podAffinityTerm"), errors);
    }
}

fn weight(term: &Value, path: &str, errors: &mut Errors) {
    let weight = number(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        let detail = "must be in the range 1-100";
        errors.push(FieldError::invalid(
            format!("{path}.weight"),
            &json!(weight),
            detail,
        ));
    }
}
