//! Scheduling rules, except affinity.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Errors, list, number, one_of, qualified, text};
use crate::validation::label_selector::labels;
use crate::validation::{FieldError, at, names};

const UNSATISFIABLE: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) fn node_selector(spec: &Value, path: &str, errors: &mut Errors) {
    labels(
        spec.get("nodeSelector"),
        &format!("{path}.nodeSelector"),
        errors,
    );
}

/// Upstream: `validateReadinessGates`, `validateSchedulingGates`.
pub(super) fn gates(spec: &Value, path: &str, errors: &mut Errors) {
    for (i, gate) in list(spec, "readinessGates").enumerate() {
        let field = format!("{path}.readinessGates[{i}].conditionType");
        qualified(text(gate, "conditionType"), &field, errors);
    }
    let mut seen = BTreeSet::new();
    for (i, gate) in list(spec, "schedulingGates").enumerate() {
        let field = format!("{path}.schedulingGates[{i}]");
        let name = text(gate, "name");
        qualified(name, &field, errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(field, &json!(name)));
        }
    }
}

/// Upstream: `validateTopologySpreadConstraints`.
pub(super) fn spread_constraints(spec: &Value, path: &str, errors: &mut Errors) {
    let constraints: Vec<&Value> = list(spec, "topologySpreadConstraints").collect();
    for (i, constraint) in constraints.iter().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{i}]");
        positive(constraint, "maxSkew", &path, errors);
        topology_key(constraint, &path, errors);
        one_of(
            constraint,
            "whenUnsatisfiable",
            &UNSATISFIABLE,
            &path,
            errors,
        );
        let [key, action] = ["topologyKey", "whenUnsatisfiable"].map(|m| text(constraint, m));
        let is_same = |other: &&Value| {
            text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action
        };
        if constraints[i + 1..].iter().any(is_same) {
            let field = format!("{path}.{{topologyKey, whenUnsatisfiable}}");
            let pair = format!("{{{key}, {action}}}");
            errors.push(FieldError::duplicate(field, &json!(pair)));
        }
        if at(constraint, "/minDomains").is_some() {
            positive(constraint, "minDomains", &path, errors);
        }
    }
}

fn positive(constraint: &Value, member: &str, path: &str, errors: &mut Errors) {
    let count = number(constraint, member).unwrap_or(0);
    if count <= 0 {
        let field = format!("{path}.{member}");
        errors.push(FieldError::invalid(
            field,
            &json!(count),
            "must be greater than zero",
        ));
    }
}

/// Validates the required key of a node label.
pub(super) fn topology_key(of: &Value, path: &str, errors: &mut Errors) {
    let field = format!("{path}.topologyKey");
    let key = text(of, "topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(field.as_str(), "can not be empty"));
    }
    qualified(key, &field, errors);
}

/// Upstream: `ValidateTolerations`.
pub(super) fn tolerations(spec: &Value, path: &str, errors: &mut Errors) {
    for (i, toleration) in list(spec, "tolerations").enumerate() {
        let path = format!("{path}.tolerations[{i}]");
        let of = |member: &str| text(toleration, member);
        if !of("key").is_empty() {
            qualified(of("key"), &format!("{path}.key"), errors);
        }
        let operator = format!("{path}.operator");
        if of("key").is_empty() && of("operator") != "Exists" {
            errors.push(FieldError::invalid(
                operator.as_str(),
                &json!(of("operator")),
                "operator must be Exists when `key` is empty, which means \"match all values and \
                 all keys\"",
            ));
        }
        if at(toleration, "/tolerationSeconds").is_some() && of("effect") != "NoExecute" {
            errors.push(FieldError::invalid(
                format!("{path}.effect"),
                &json!(of("effect")),
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ));
        }
        match of("operator") {
            "" | "Equal" => {
                let wrong = names::label_value(of("value"));
                if !wrong.is_empty() {
                    let value = json!(of("value"));
                    errors.push(FieldError::invalid(operator, &value, &wrong.join(";")));
                }
            }
            "Exists" => {
                if !of("value").is_empty() {
                    let detail = "value must be empty when `operator` is 'Exists'";
                    errors.push(FieldError::invalid(operator, toleration, detail));
                }
            }
            _ => one_of(toleration, "operator", &["Equal", "Exists"], &path, errors),
        }
        one_of(toleration, "effect", &EFFECTS, &path, errors);
    }
}
