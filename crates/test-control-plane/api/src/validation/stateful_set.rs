//! Rules of `StatefulSets`.

use std::collections::BTreeSet;

use kube_apimachinery::selector::{LabelSelector, Selector};
use serde_json::{Map, Value, json};

use super::others::count_or_percent;
use super::{
    FieldError, Subject, at, claim, label_selector, metadata, names, not_negative, pod_template,
};
use crate::kinds::Subresource;
use crate::kinds::Target;
use crate::members::{list_at, text_at};
use crate::object::Draft;

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

pub(super) fn validate(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    if subject.target == Target::Part(Subresource::Status) {
        status(subject, errors);
        return;
    }
    let null = Value::Null;
    let spec = subject.new.value.get("spec").unwrap_or(&null);
    let old_spec = subject
        .old
        .map(|old| old.value.get("spec").unwrap_or(&null));
    policy_and_strategy(spec, errors);
    retention(spec, errors);
    numbers(spec, errors);
    if old_spec.is_none() {
        service_and_claims(spec, errors);
    }
    claim_volumes(spec, errors);
    let template = Template {
        noun: "statefulset",
        kind: "StatefulSet",
        selects_by_map: false,
    };
    selector_and_template(spec, template, errors);
    if old_spec.is_some_and(|old| immutable_part(old) != immutable_part(spec)) {
        errors.push(FieldError::forbidden("spec", IMMUTABLE));
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

fn policy_and_strategy(spec: &Value, errors: &mut Vec<FieldError>) {
    let policy = spec.get("podManagementPolicy").unwrap_or(&Value::Null);
    if policy != "OrderedReady" && policy != "Parallel" {
        errors.push(FieldError::invalid(
            "spec.podManagementPolicy",
            policy,
            "must be 'OrderedReady' or 'Parallel'",
        ));
    }
    let rolling = at(spec, "/updateStrategy/rollingUpdate");
    match at(spec, "/updateStrategy/type").and_then(Value::as_str) {
        Some("RollingUpdate") => {}
        Some("OnDelete") => {
            if let Some(rolling) = rolling {
                errors.push(FieldError::invalid(
                    "spec.updateStrategy.rollingUpdate",
                    rolling,
                    "only allowed for updateStrategy 'RollingUpdate'",
                ));
            }
            return;
        }
        other => {
            // The text of the reference's internal type.
            let rolling = rolling.unwrap_or(&Value::Null);
            errors.push(FieldError::invalid_text(
                "spec.updateStrategy",
                &format!(
                    "{{\"Type\":{},\"RollingUpdate\":{}}}",
                    json!(other),
                    inner_rolling_update(rolling)
                ),
                "must be 'RollingUpdate' or 'OnDelete'",
            ));
            return;
        }
    }
    let rolling = rolling.unwrap_or(&Value::Null);
    let path = "spec.updateStrategy.rollingUpdate";
    not_negative(rolling, "/partition", &format!("{path}.partition"), errors);
    if let Some(value) = at(rolling, "/maxUnavailable") {
        max_unavailable(value, &format!("{path}.maxUnavailable"), errors);
    }
}

fn inner_rolling_update(rolling: &Value) -> String {
    if rolling.is_null() {
        return "null".to_owned();
    }
    let of = |member: &str| rolling.get(member).unwrap_or(&Value::Null);
    let partition = rolling
        .get("partition")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    format!(
        "{{\"Partition\":{partition},\"MaxUnavailable\":{}}}",
        of("maxUnavailable")
    )
}

fn max_unavailable(value: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    let is_zero = value.as_i64() == Some(0) || percent.is_some_and(|n| n.parse() == Ok(0_u64));
    if is_zero {
        errors.push(FieldError::invalid(field, value, "cannot be 0"));
    } else {
        count_or_percent(value, field, errors);
    }
}

fn retention(spec: &Value, errors: &mut Vec<FieldError>) {
    for member in ["whenDeleted", "whenScaled"] {
        let field = format!("spec.persistentVolumeClaimRetentionPolicy.{member}");
        let pointer = format!("/persistentVolumeClaimRetentionPolicy/{member}");
        if let Some(value) = at(spec, &pointer)
            && value != "Retain"
            && value != "Delete"
        {
            let known = ["Retain", "Delete"];
            errors.push(FieldError::not_supported(field, value, &known));
        }
    }
}

fn numbers(spec: &Value, errors: &mut Vec<FieldError>) {
    not_negative(spec, "/replicas", "spec.replicas", errors);
    not_negative(spec, "/minReadySeconds", "spec.minReadySeconds", errors);
    not_negative(spec, "/ordinals/start", "spec.ordinals.start", errors);
}

fn service_and_claims(spec: &Value, errors: &mut Vec<FieldError>) {
    if let Some(name) = at(spec, "/serviceName").and_then(Value::as_str)
        && !name.is_empty()
    {
        for message in names::dns_label(name) {
            errors.push(FieldError::invalid(
                "spec.serviceName",
                &json!(name),
                message,
            ));
        }
    }
    for (i, template) in claim_templates(spec).enumerate() {
        let path = format!("spec.volumeClaimTemplates[{i}].spec");
        let null = Value::Null;
        claim::validate_spec(template.get("spec").unwrap_or(&null), &path, errors);
    }
}

/// Validates the pod volumes of the claim templates, like those of the pod template.
fn claim_volumes(spec: &Value, errors: &mut Vec<FieldError>) {
    let of = |template: &Value| text_at(template, "/metadata/name").to_owned();
    let claims: BTreeSet<String> = claim_templates(spec).map(of).collect();
    for (i, name) in claims.iter().enumerate() {
        let path = format!("spec.template.spec.volumes[{i}]");
        let field = format!("{path}.name");
        if name.is_empty() {
            let claim = format!("{path}.persistentVolumeClaim.claimName");
            errors.push(FieldError::required(claim, ""));
            errors.push(FieldError::required(field, ""));
            continue;
        }
        for message in names::dns_label(name) {
            errors.push(FieldError::invalid(field.as_str(), &json!(name), message));
        }
    }
}

fn claim_templates(spec: &Value) -> impl Iterator<Item = &Value> {
    spec.get("volumeClaimTemplates")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// The kind with a pod template, and its selector form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Template {
    /// The kind's name in the error about an empty selector.
    pub noun: &'static str,
    /// The kind's name in the error about a deadline.
    pub kind: &'static str,
    /// True if the selector is a map of labels.
    pub selects_by_map: bool,
}

/// Validates a selector and checks that it matches the template.
pub(super) fn selector_and_template(spec: &Value, owner: Template, errors: &mut Vec<FieldError>) {
    let empty = Map::new();
    let given = at(spec, "/template/metadata/labels").and_then(Value::as_object);
    let labels = given.filter(|labels| !labels.is_empty());
    let raw = at(spec, "/selector");
    if let Some(raw) = raw.filter(|_| !owner.selects_by_map) {
        label_selector::validate(raw, "spec.selector", errors);
    }
    let parsed = raw.map(|raw| {
        let raw = if owner.selects_by_map {
            json!({"matchLabels": raw})
        } else {
            raw.clone()
        };
        let selector = serde_json::from_value::<LabelSelector>(raw).ok()?;
        Selector::from_label_selector(Some(&selector)).ok()
    });
    let selector = match parsed {
        None => {
            errors.push(FieldError::required("spec.selector", ""));
            Some(Selector::nothing())
        }
        Some(None) => {
            let raw = raw.unwrap_or(&Value::Null);
            // Only stateful sets have an empty detail here.
            let detail = match owner.kind {
                "StatefulSet" => "",
                _ => "invalid label selector",
            };
            errors.push(FieldError::invalid("spec.selector", raw, detail));
            None
        }
        Some(Some(selector)) => {
            if selector.is_empty() {
                errors.push(FieldError::invalid(
                    "spec.selector",
                    &json!({}),
                    &format!("empty selector is invalid for {}", owner.noun),
                ));
            }
            Some(selector)
        }
    };
    if let Some(selector) = selector
        && !(raw.is_some() && selector.is_empty())
        && !selector.matches(labels.unwrap_or(&empty))
    {
        errors.push(FieldError::invalid(
            "spec.template.metadata.labels",
            &labels.map_or(Value::Null, |labels| Value::Object(labels.clone())),
            "`selector` does not match template `labels`",
        ));
    }
    let null = Value::Null;
    let labels = spec.pointer("/template/metadata/labels");
    label_selector::labels(labels, "spec.template.labels", errors);
    let annotations = spec.pointer("/template/metadata/annotations");
    metadata::annotations(annotations, "spec.template.annotations", errors);
    let pod_spec = at(spec, "/template/spec").unwrap_or(&null);
    let claims: BTreeSet<&str> = claim_templates(spec)
        .filter_map(|t| t.pointer("/metadata/name")?.as_str())
        .collect();
    pod_template::validate_spec(pod_spec, "spec.template.spec", &claims, errors);
    if list_at(pod_spec, "/ephemeralContainers").len() > 0 {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(
            "spec.template.spec.ephemeralContainers",
            detail,
        ));
    }
    let restart = at(pod_spec, "/restartPolicy").unwrap_or(&null);
    if restart == "OnFailure" || restart == "Never" {
        errors.push(FieldError::not_supported(
            "spec.template.spec.restartPolicy",
            restart,
            &["Always"],
        ));
    }
    if at(pod_spec, "/activeDeadlineSeconds").is_some() {
        errors.push(FieldError::forbidden(
            "spec.template.spec.activeDeadlineSeconds",
            &format!("activeDeadlineSeconds in {} is not Supported", owner.kind),
        ));
    }
}

fn status(subject: Subject<'_>, errors: &mut Vec<FieldError>) {
    let value = &subject.new.value;
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64);
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
        let pointer = format!("/status/{member}");
        not_negative(value, &pointer, &format!("status.{member}"), errors);
    }
    let replicas = number("/status/replicas").unwrap_or(0);
    for member in &counters[1..] {
        let count = number(&format!("/status/{member}")).unwrap_or(0);
        if count > replicas {
            errors.push(FieldError::invalid(
                format!("status.{member}"),
                &json!(count),
                "cannot be greater than status.replicas",
            ));
        }
    }
    let ready = number("/status/readyReplicas").unwrap_or(0);
    let available = number("/status/availableReplicas").unwrap_or(0);
    if available > ready && available <= replicas {
        errors.push(FieldError::invalid(
            "status.availableReplicas",
            &json!(available),
            "cannot be greater than status.readyReplicas",
        ));
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
            max_unavailable(&value, "field", &mut errors);
            assert_eq!(errors.is_empty(), is_allowed, "{value}");
        }
    }
}
