//! Scheduling rules.

use std::collections::BTreeSet;

use serde_json::json;

use crate::members::text;
use crate::status::FieldError;
use crate::validation::place::{Errors, Place};
use crate::validation::{names, rules};

/// Upstream: `validateSchedulingGates`.
pub(in crate::validation) fn scheduling_gates(gates: &Place<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for gate in gates.elements() {
        let name = gate.text_of("name");
        let value = json!(name);
        for why in names::qualified_name(name) {
            errors.push(FieldError::invalid(gate.path(), &value, &why));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(gate.path(), &value));
        }
    }
}

/// Upstream: `validateTopologySpreadConstraints`.
pub(in crate::validation) fn spread_constraints(constraints: &Place<'_>, errors: &mut Errors) {
    for (i, constraint) in constraints.elements().enumerate() {
        rules::check("TopologySpreadConstraint", &constraint, errors);
        let members = ["topologyKey", "whenUnsatisfiable"];
        let [key, action] = members.map(|member| constraint.text_of(member));
        let is_same =
            |other: Place<'_>| members.map(|member| text(other.value, member)) == [key, action];
        if constraints.values().skip(i + 1).any(is_same) {
            let field = constraint.member("{topologyKey, whenUnsatisfiable}").path();
            let pair = format!("{{{key}, {action}}}");
            errors.push(FieldError::duplicate(field, &json!(pair)));
        }
        rules::check("TopologySpreadConstraint/rest", &constraint, errors);
    }
}

/// Validates the value of a toleration, whose errors name the operator.
///
/// Upstream: `ValidateTolerations`.
pub(in crate::validation) fn toleration_value(toleration: &Place<'_>, errors: &mut Errors) {
    let value = toleration.text_of("value");
    let operator = toleration.member("operator");
    match operator.text() {
        "" | "Equal" => {
            let wrong = names::label_value(value);
            if !wrong.is_empty() {
                let detail = wrong.join(";");
                errors.push(FieldError::invalid(operator.path(), &json!(value), &detail));
            }
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            let error = FieldError::invalid(operator.path(), toleration.value, detail);
            errors.push(error);
        }
        _ => {}
    }
}
