//! Rules of stateful sets.

use std::collections::BTreeSet;

use kube_apimachinery::stateful_set::MUTABLE_SPEC_FIELDS;
use serde_json::{Map, Value};

use super::engine::{Errors, Place};
use super::pods::spec::{template_metadata, template_with};
use super::workloads;
use crate::members::{list, text_at};

const IMMUTABLE: &str = "updates to statefulset spec for fields other than 'replicas', \
     'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
     'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// Rejects changes of all fields except the mutable ones.
pub(super) fn stateful_set_update(spec: &Place<'_>, errors: &mut Errors) {
    if spec
        .old
        .is_some_and(|old| immutable_part(old) != immutable_part(spec.value))
    {
        errors.push(spec.forbidden(IMMUTABLE));
    }
}

fn immutable_part(spec: &Value) -> Map<String, Value> {
    let mut map = spec.as_object().cloned().unwrap_or_default();
    map.retain(|key, value| {
        let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        !MUTABLE_SPEC_FIELDS.contains(&key.as_str()) && !empty
    });
    map
}

/// Validates the update strategy.
pub(super) fn stateful_set_strategy(strategy: &Place<'_>, errors: &mut Errors) {
    let rolling = strategy.member("rollingUpdate");
    match strategy.text_of("type") {
        "" => errors.push(strategy.required("")),
        "RollingUpdate" if rolling.is_present() => {
            rolling.check("RollingUpdateStatefulSetStrategy", errors);
        }
        "RollingUpdate" => {}
        "OnDelete" | "Recreate" if allows(strategy) => {
            if rolling.is_present() {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                errors.push(rolling.invalid(detail));
            }
        }
        _ => errors.push(strategy.invalid("must be 'RollingUpdate' or 'OnDelete'")),
    }
}

/// Returns true unless the strategy is `Recreate`, its gate is off, and the stored set has another
/// strategy or the version has no such gate.
fn allows(strategy: &Place<'_>) -> bool {
    const RECREATE: &str = "Recreate";
    if strategy.text_of("type") != RECREATE {
        return true;
    }
    let had_it = || strategy.old.is_some_and(|old| old["type"] == RECREATE);
    let gate = strategy.context.gates.stateful_set_recreate_strategy;
    gate.is_some_and(|is_on| is_on || had_it())
}

/// Validates the selector and the template. The controller sets the names of pods, and the claims
/// replace volumes of their names.
///
/// Upstream: `ValidateStatefulSetSpec`.
pub(super) fn stateful_set_template(spec: &Place<'_>, errors: &mut Errors) {
    let found = spec.member("selector");
    workloads::given_selector(&found, "statefulset", errors);
    let Some(selector) = workloads::selector(found.value) else {
        errors.push(found.invalid(""));
        return;
    };
    if !selector.is_empty() {
        workloads::selects(&selector, spec, errors);
    }
    let template = spec.member("template");
    let claims = list(spec.value, "volumeClaimTemplates");
    let claims: BTreeSet<&str> = claims
        .map(|claim| text_at(claim, "/metadata/name"))
        .collect();
    let claims: Vec<&str> = claims.into_iter().collect();
    let mut of_template = Errors::new();
    template_with(&template, &claims, true, &mut of_template);
    if of_template.is_empty() || !was_invalid(spec) {
        errors.append(&mut of_template);
    }
    template_metadata(&template, errors);
}

/// Returns true if the stored spec breaks the rules.
fn was_invalid(spec: &Place<'_>) -> bool {
    let Some(old) = spec.old.filter(|old| !std::ptr::eq(*old, spec.value)) else {
        return false;
    };
    let stored = Place::root(spec.context, old, Some(old), "");
    spec.context.rules.breaks("StatefulSetSpec", &stored)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::ServerGates;
    use crate::validation::tables;

    #[test]
    fn recreate_has_no_parameters() {
        let strategy = json!({"type": "Recreate", "rollingUpdate": {"partition": 0}});
        let gates = ServerGates {
            stateful_set_recreate_strategy: Some(true),
            ..ServerGates::default()
        };
        let context = tables::context(gates);
        let mut errors = Vec::new();
        stateful_set_strategy(&Place::root(&context, &strategy, None, ""), &mut errors);
        let [error] = &errors[..] else {
            panic!("{errors:?}");
        };
        assert_eq!(error.field, "rollingUpdate");
        let detail = "only allowed for updateStrategy 'RollingUpdate'";
        assert!(error.message.ends_with(detail), "{error:?}");
    }
}
