//! Rules of `StatefulSets`, and of all kinds with a pod template.

use std::collections::BTreeSet;

use kube_apimachinery::selector::{LabelSelector, Selector};
use serde_json::{Map, Value, json};

use super::metadata::labels;
use super::others::count_or_percent;
use super::place::{Errors, Place};
use super::{Subject, metadata, names, pod_template, rules};
use crate::members::{at, list, text_at};
use crate::object::Draft;
use crate::status::FieldError;

const IMMUTABLE: &str = "updates to statefulset spec for fields other than 'replicas', \
     'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
     'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Rejects changes of all members except the mutable ones.
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
        !MUTABLE.contains(&key.as_str()) && !empty
    });
    map
}

pub(super) fn stateful_set_strategy(strategy: &Place<'_>, errors: &mut Errors) {
    let rolling = strategy.member("rollingUpdate");
    match strategy.text_of("type") {
        "RollingUpdate" => {
            not_negative(&rolling.member("partition"), errors);
            let most = rolling.member("maxUnavailable");
            if most.is_present() {
                max_unavailable(&most, errors);
            }
        }
        "OnDelete" | "Recreate" if !allows(strategy) => not_a_strategy(strategy, errors),
        "OnDelete" | "Recreate" if rolling.is_present() => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(rolling.invalid(detail));
        }
        "OnDelete" | "Recreate" => {}
        _ => not_a_strategy(strategy, errors),
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
    let gate = strategy.gates.stateful_set_recreate_strategy;
    gate.is_some_and(|is_on| is_on || had_it())
}

/// Rejects the strategy's type, with the text of the reference's internal type.
fn not_a_strategy(strategy: &Place<'_>, errors: &mut Errors) {
    let kind = strategy.member("type");
    let rolling = inner_rolling_update(&strategy.member("rollingUpdate"));
    errors.push(FieldError::invalid_text(
        strategy.path(),
        &format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", kind.value),
        "must be 'RollingUpdate' or 'OnDelete'",
    ));
}

fn inner_rolling_update(rolling: &Place<'_>) -> String {
    if !rolling.is_present() {
        return "null".to_owned();
    }
    let [partition, most] = ["partition", "maxUnavailable"].map(|member| rolling.member(member));
    let (partition, most) = (partition.number(), most.value);
    format!("{{\"Partition\":{partition},\"MaxUnavailable\":{most}}}")
}

fn max_unavailable(count: &Place<'_>, errors: &mut Errors) {
    let percent = count.text().strip_suffix('%');
    let is_zero =
        count.value.as_i64() == Some(0) || percent.is_some_and(|n| n.parse() == Ok(0_u64));
    if is_zero {
        errors.push(count.invalid("cannot be 0"));
    } else {
        count_or_percent(count, errors);
    }
}

/// Validates the pod volumes of the claim templates, like those of the pod template.
pub(super) fn claim_volumes(spec: &Place<'_>, errors: &mut Errors) {
    let template = spec.member("template");
    let claims = list(spec.value, "volumeClaimTemplates");
    let names: BTreeSet<&str> = claims
        .map(|claim| text_at(claim, "/metadata/name"))
        .collect();
    for (i, name) in names.into_iter().enumerate() {
        let path = format!("spec.volumes[{i}]");
        let volume = template.member(&path);
        if name.is_empty() {
            let claim = volume.member("persistentVolumeClaim.claimName");
            errors.push(claim.required(""));
            errors.push(volume.member("name").required(""));
            continue;
        }
        let field = volume.member("name").path();
        let name_of = json!(name);
        Place::new(&name_of, &field).invalid_for(names::dns_label(name), errors);
    }
}

/// Validates a selector and checks that it matches the template. The arguments are the kind's names
/// in the errors about an empty selector and about a deadline.
pub(super) fn selector_and_template(spec: &Place<'_>, args: &[&str], _: &str, errors: &mut Errors) {
    let [noun, kind] = [0, 1].map(|i| args.get(i).copied().unwrap_or_default());
    template_is_selected(spec, noun, kind, errors);
    let template = spec.member("template");
    labels(&template.member_as("metadata.labels", "labels"), errors);
    let annotations = template.member_as("metadata.annotations", "annotations");
    metadata::annotations(&annotations, errors);
    let pod_spec = template.member("spec");
    let claims = list(spec.value, "volumeClaimTemplates");
    let claims = claims.filter_map(|claim| at(claim, "/metadata/name")?.as_str());
    pod_template::validate_spec(&pod_spec, &claims.collect(), errors);
    let ephemeral = pod_spec.member("ephemeralContainers");
    if !ephemeral.is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(ephemeral.forbidden(detail));
    }
    let restart = pod_spec.member("restartPolicy");
    if matches!(restart.text(), "OnFailure" | "Never") {
        errors.push(restart.not_supported(&["Always"]));
    }
    let deadline = pod_spec.member("activeDeadlineSeconds");
    if deadline.is_present() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(deadline.forbidden(&detail));
    }
}

fn template_is_selected(spec: &Place<'_>, noun: &str, kind: &str, errors: &mut Errors) {
    let found = spec.member("selector");
    // Replication controllers select by a map of labels.
    let is_map = kind == "ReplicationController";
    if !is_map {
        rules::check("LabelSelector", &found, errors);
    }
    let selector = if !found.is_present() {
        errors.push(found.required(""));
        Selector::nothing()
    } else if let Some(selector) = parsed(found.value, is_map) {
        if selector.is_empty() {
            let detail = format!("empty selector is invalid for {noun}");
            errors.push(FieldError::invalid(found.path(), &json!({}), &detail));
            return;
        }
        selector
    } else {
        // Only stateful sets have an empty detail here.
        let detail = match kind {
            "StatefulSet" => "",
            _ => "invalid label selector",
        };
        errors.push(found.invalid(detail));
        return;
    };
    let labels = spec.member("template.metadata.labels");
    let given = labels.value.as_object().filter(|labels| !labels.is_empty());
    if !selector.matches(given.unwrap_or(&Map::new())) {
        let detail = "`selector` does not match template `labels`";
        let shown = if given.is_some() {
            labels.value
        } else {
            &Value::Null
        };
        errors.push(FieldError::invalid(labels.path(), shown, detail));
    }
}

fn parsed(selector: &Value, is_map: bool) -> Option<Selector> {
    let selector = if is_map {
        json!({"matchLabels": selector})
    } else {
        selector.clone()
    };
    let selector: LabelSelector = serde_json::from_value(selector).ok()?;
    Selector::from_label_selector(Some(&selector)).ok()
}

/// Rejects a negative number.
pub(super) fn not_negative(count: &Place<'_>, errors: &mut Errors) {
    if count.number() < 0 {
        errors.push(count.invalid("must be greater than or equal to 0"));
    }
}

/// Rejects counters above the number of replicas.
pub(super) fn not_above_replicas(status: &Place<'_>, counters: &[&str], errors: &mut Errors) {
    let replicas = status.member("replicas").number();
    for member in counters {
        let count = status.member(member);
        if count.number() > replicas {
            let detail = "cannot be greater than status.replicas";
            let number = json!(count.number());
            errors.push(FieldError::invalid(count.path(), &number, detail));
        }
    }
}

/// Validates the counters of a status.
pub(super) fn status(subject: Subject<'_>, status: &Place<'_>, errors: &mut Errors) {
    let counters = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    for member in counters
        .iter()
        .chain(&["observedGeneration", "collisionCount"])
    {
        not_negative(&status.member(member), errors);
    }
    not_above_replicas(status, &counters[1..], errors);
    let [replicas, ready] = ["replicas", "readyReplicas"].map(|m| status.member(m).number());
    let available = status.member("availableReplicas");
    if available.number() > ready && available.number() <= replicas {
        let detail = "cannot be greater than status.readyReplicas";
        let number = json!(available.number());
        errors.push(FieldError::invalid(available.path(), &number, detail));
    }
    let collisions = |draft: &Draft| {
        let value = draft.value.pointer("/status/collisionCount");
        value.and_then(Value::as_i64)
    };
    let now = collisions(subject.new);
    if let Some(before) = subject.old.and_then(collisions)
        && now.is_none_or(|now| now < before)
    {
        errors.push(FieldError::invalid(
            "status.collisionCount",
            &json!(now.unwrap_or(0)),
            "cannot be decremented",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::FeatureGates;

    #[test]
    fn recreate_has_no_parameters() {
        let set = json!({"type": "Recreate", "rollingUpdate": {"partition": 0}});
        let gates = FeatureGates {
            stateful_set_recreate_strategy: Some(true),
            ..FeatureGates::default()
        };
        let mut errors = Vec::new();
        stateful_set_strategy(&Place::root(&set, None, gates), &mut errors);
        let [error] = &errors[..] else {
            panic!("{errors:?}");
        };
        assert_eq!(error.field, "rollingUpdate");
        let detail = "only allowed for updateStrategy 'RollingUpdate'";
        assert!(error.message.ends_with(detail), "{error:?}");
    }

    #[test]
    fn max_unavailable_is_between_one_and_all_pods() {
        for (value, is_allowed) in [
            (json!(1), true),
            (json!("100%"), true),
            (json!(0), false),
            (json!("0%"), false),
            (json!(-1), false),
            (json!("-5%"), false),
            (json!("101%"), false),
            (json!("5"), false),
        ] {
            let mut errors = Vec::new();
            max_unavailable(&Place::new(&value, "field"), &mut errors);
            assert_eq!(errors.is_empty(), is_allowed, "{value}");
        }
    }
}
