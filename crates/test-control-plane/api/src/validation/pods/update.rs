//! Rules of changes of pods.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::members::resources::{amounts, qos_class};
use crate::members::{at, copy_field, list, set_or_remove, text};
use crate::status::FieldError;
use crate::validation::engine::{Errors, Place};

const IMMUTABLE: &str = "pod updates may not change fields other than \
     `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
     `spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

const GRACE: &str = "terminationGracePeriodSeconds";

/// The path of the terms for nodes.
const TERMS: &str = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
     nodeSelectorTerms";

const MIRROR: &str = "kubernetes.io/config.mirror";

/// Upstream: `ValidatePodUpdate`.
pub(in crate::validation) fn pod_update(spec: &Place<'_>, errors: &mut Errors) {
    let (new, Some(old)) = (spec.value, spec.old) else {
        return;
    };
    for member in ["containers", "initContainers"] {
        let containers = spec.member(member);
        if list(new, member).len() != list(old, member).len() {
            let detail = "pod updates may not add or remove containers";
            errors.push(containers.forbidden(detail));
            return;
        }
        for container in containers.elements() {
            container.check("Container/updated", errors);
        }
    }
    let deadline = spec.member("activeDeadlineSeconds");
    if !deadline_update(&deadline, errors) {
        return;
    }
    added_tolerations(&spec.member("tolerations"), errors);
    let gates = spec.member("schedulingGates");
    // The last gate of a name counts.
    let named: BTreeMap<&str, Place<'_>> = gates
        .elements()
        .map(|gate| (text(gate.value, "name"), gate))
        .collect();
    let mut last: Vec<Place<'_>> = named.into_values().collect();
    last.sort_by_key(Place::index);
    for gate in last {
        let name = gate.text_of("name");
        if list(old, "schedulingGates").all(|old| text(old, "name") != name) {
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(gate.member("name").forbidden(&detail));
        }
    }
    let mut masked = without_allowed_changes(new, old);
    if list(old, "schedulingGates").len() > 0 {
        gated_update(spec, errors);
        copy_field(&mut masked, old, "nodeSelector");
        keep_node_affinity(&mut masked, old);
    }
    if masked != *old {
        let difference = spec.difference("PodSpec", old, &masked);
        errors.push(spec.forbidden(&format!("{IMMUTABLE}\n{difference}")));
    }
}

/// Returns false if the deadline ends the check of the pod.
fn deadline_update(seconds: &Place<'_>, errors: &mut Errors) -> bool {
    let before = seconds.old.and_then(Value::as_i64);
    match (seconds.value.as_i64(), before) {
        (Some(now), _) if !(0..=i64::from(i32::MAX)).contains(&now) => {
            errors.push(seconds.invalid("must be between 0 and 2147483647, inclusive"));
            false
        }
        (Some(now), Some(before)) if now > before => {
            errors.push(seconds.invalid("must be less than or equal to previous value"));
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(seconds.invalid(detail));
            true
        }
        _ => true,
    }
}

/// Upstream: `validateOnlyAddedTolerations`.
fn added_tolerations(tolerations: &Place<'_>, errors: &mut Errors) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(map) = toleration.as_object_mut() {
            map.remove("tolerationSeconds");
        }
        toleration
    };
    let of = |value: Option<&Value>| -> Vec<Value> {
        let list = value.and_then(Value::as_array).into_iter().flatten();
        list.map(without_seconds).collect()
    };
    let (now, before) = (of(Some(tolerations.value)), of(tolerations.old));
    if before.iter().all(|old| now.contains(old)) {
        for toleration in tolerations.elements() {
            toleration.check("Toleration", errors);
        }
    } else {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(tolerations.forbidden(detail));
    }
}

/// Returns the new spec with its mutable fields reset to their old values.
fn without_allowed_changes(new: &Value, old: &Value) -> Value {
    let mut masked = new.clone();
    for member in ["containers", "initContainers"] {
        let found = masked.get_mut(member).and_then(Value::as_array_mut);
        for (container, old) in found.into_iter().flatten().zip(list(old, member)) {
            copy_field(container, old, "image");
        }
    }
    for member in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        copy_field(&mut masked, old, member);
    }
    let grace = |spec: &Value| spec.get(GRACE).and_then(Value::as_i64);
    if grace(old).is_some_and(|s| s < 0) && grace(new) == Some(1) {
        copy_field(&mut masked, old, GRACE);
    }
    masked
}

/// Takes the affinity to nodes from another spec.
pub(in crate::validation) fn keep_node_affinity(masked: &mut Value, from: &Value) {
    let mut affinity = masked.get("affinity").cloned().unwrap_or(json!({}));
    let other = from.get("affinity").unwrap_or(&Value::Null);
    copy_field(&mut affinity, other, "nodeAffinity");
    let is_gone = other.is_null() && affinity == json!({});
    if let Some(map) = masked.as_object_mut() {
        set_or_remove(map, "affinity", Some(affinity).filter(|_| !is_gone));
    }
}

/// Checks that the choice of nodes for a pod with gates only becomes narrower.
fn gated_update(spec: &Place<'_>, errors: &mut Errors) {
    let selector = spec.member("nodeSelector");
    let old = selector
        .old
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    if !old
        .into_iter()
        .all(|(key, value)| selector.value.get(key) == Some(value))
    {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(selector.invalid(detail));
    }
    let terms = spec.member(TERMS);
    let old: &[Value] = terms
        .old
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice);
    let new: Vec<Place<'_>> = terms.elements().collect();
    if !old.is_empty() && old.len() != new.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(terms.invalid(detail));
        return;
    }
    for (new, old) in new.iter().zip(old) {
        if !has_only_additions(new.value, old) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.push(new.invalid(detail));
        }
    }
}

/// Upstream: `validateNodeSelectorTermHasOnlyAdditions`.
fn has_only_additions(new: &Value, old: &Value) -> bool {
    let members = ["matchExpressions", "matchFields"];
    let of = |term: &Value| members.map(|member| list(term, member).len());
    if of(old) == [0, 0] && of(new) != [0, 0] {
        return false;
    }
    members.iter().all(|member| {
        let (new, old) = (list(new, member).as_slice(), list(old, member).as_slice());
        new.starts_with(old)
    })
}

/// Reports an error instead of all others.
fn only(detail: &str, errors: &mut Errors) {
    errors.clear();
    errors.push(FieldError::forbidden("[]", detail));
}

fn is_mirror(pod: &Place<'_>) -> bool {
    let old = pod.old.and_then(|old| at(old, "/metadata/annotations"));
    old.is_some_and(|annotations| annotations.get(MIRROR).is_some())
}

/// Upstream: `ValidatePodEphemeralContainersUpdate`.
pub(in crate::validation) fn ephemeral_containers_update(pod: &Place<'_>, errors: &mut Errors) {
    if is_mirror(pod) {
        return only("static pods do not support ephemeral containers", errors);
    }
    let containers = pod.member("spec.ephemeralContainers");
    for old in containers
        .old
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let name = text(old, "name");
        let detail = match containers.values().find(|new| new.text_of("name") == name) {
            None => format!("existing ephemeral containers {name:?} may not be removed\n"),
            Some(new) if new.value != old => {
                let difference = containers.difference("EphemeralContainer", old, new.value);
                format!("existing ephemeral containers {name:?} may not be changed\n{difference}")
            }
            Some(_) => continue,
        };
        errors.push(containers.forbidden(&detail));
    }
}

/// Upstream: `ValidatePodResize`.
pub(in crate::validation) fn pod_resize(pod: &Place<'_>, errors: &mut Errors) {
    let Some(old) = pod.old else { return };
    let old_spec = old.get("spec").unwrap_or(&Value::Null);
    if is_mirror(pod) {
        return only("static pods cannot be resized", errors);
    }
    if old_spec
        .get("os")
        .is_some_and(|os| text(os, "name") == "windows")
    {
        return only("windows pods cannot be resized", errors);
    }
    let spec = pod.member("spec");
    let class = at(old, "/status/qosClass").and_then(Value::as_str);
    if class.unwrap_or_else(|| qos_class(old)) != qos_class(pod.value) {
        let shown = json!(class.unwrap_or_default());
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(spec.invalid_as(&shown, detail));
    }
    let statuses = old
        .get("status")
        .map(|status| list(status, "containerStatuses"));
    let mut statuses = statuses.into_iter().flatten();
    let running = statuses.find(|status| at(status, "/state/running").is_some());
    if running.is_some_and(|status| status.get("resources").is_none()) {
        errors.push(spec.forbidden("Pod running on node without support for resize"));
    }
    pod_level(&spec, errors);
    let before = errors.len();
    same_order(&spec, old_spec, errors);
    if errors.len() > before {
        return;
    }
    for member in ["initContainers", "containers"] {
        let containers = spec.member(member);
        for (container, old) in containers.elements().zip(list(old_spec, member)) {
            let old = old.get("resources").unwrap_or(&Value::Null);
            let resources = container.member("resources");
            removed(&resources.with_old(old), "resource", errors);
        }
    }
    changed_containers(&spec, old_spec, errors);
}

/// Rejects changes of the resources of the whole pod besides those of cores and memory.
///
/// Upstream: `validatePodLevelResourcesResize`.
fn pod_level(spec: &Place<'_>, errors: &mut Errors) {
    let resources = spec.member("resources");
    let old = resources.old.unwrap_or(&Value::Null);
    let lists = ["requests", "limits"];
    let is_set = |of: &Value| {
        let mut found = lists.iter().filter_map(|list| amounts(of, list));
        found.any(|list| !list.is_empty())
    };
    if !is_set(old) && !is_set(resources.value) {
        return;
    }
    if !old.is_null() && !resources.is_present() {
        errors.push(resources.forbidden("pod-level resources cannot be removed"));
        return;
    }
    removed(&resources, "pod-level resource", errors);
    let rest = |of: &Value| without_amounts(&json!({"resources": of}));
    if rest(resources.value) != rest(old) {
        errors.push(spec.forbidden("only cpu and memory resources are mutable at pod-level"));
    }
}

/// Rejects other containers, or another order.
fn same_order(spec: &Place<'_>, old: &Value, errors: &mut Errors) {
    for member in ["containers", "initContainers"] {
        let containers = spec.member(member);
        if list(spec.value, member).len() != list(old, member).len() {
            let detail = format!("{member} may not be added or removed on resize");
            errors.push(containers.forbidden(&detail));
            continue;
        }
        for (container, old) in containers.elements().zip(list(old, member)) {
            let name = container.member("name");
            if name.text() != text(old, "name") {
                let detail = format!("{member} may not be renamed or reordered on resize");
                errors.push(name.forbidden(&detail));
            }
        }
    }
}

fn removed(resources: &Place<'_>, noun: &str, errors: &mut Errors) {
    for member in ["requests", "limits"] {
        let place = resources.member(member);
        let mut old = place.old.and_then(Value::as_object).into_iter().flatten();
        if old.any(|(name, _)| place.value.get(name).is_none()) {
            errors.push(place.forbidden(&format!("{noun} {member} cannot be removed")));
        }
    }
}

/// Rejects changes of containers besides those of cores and memory.
fn changed_containers(spec: &Place<'_>, old: &Value, errors: &mut Errors) {
    for member in ["containers", "initContainers"] {
        let containers = spec.member(member);
        for (container, old) in containers.elements().zip(list(old, member)) {
            let is_init = member == "initContainers";
            let place = if is_init { &container } else { spec };
            let mut resized = without_amounts(container.value);
            if let Some(resources) = resized["resources"].as_object_mut() {
                // As in upstream, new claims do not count.
                resources.remove("claims");
            }
            if resized != without_amounts(old) {
                errors.push(place.forbidden(if is_init {
                    "only cpu and memory resources for init or sidecar containers are mutable"
                } else {
                    "only cpu and memory resources are mutable"
                }));
            }
            let is_sidecar = container.has("restartPolicy", "Always");
            let mut policies = list(container.value, "resizePolicy");
            let restarts =
                policies.any(|policy| text(policy, "restartPolicy") == "RestartContainer");
            if is_init && container.value != old && !is_sidecar && restarts {
                let detail = "non-sidecar init containers with a resize policy of \
                              RestartContainer cannot be resized";
                errors.push(place.forbidden(detail));
            }
        }
    }
}

/// Returns a container without its amounts of cores and memory.
fn without_amounts(container: &Value) -> Value {
    let mut container = container.clone();
    for list in ["limits", "requests"] {
        let resources = container.get("resources").unwrap_or(&Value::Null);
        let mut kept = amounts(resources, list).cloned().unwrap_or_default();
        kept.retain(|name, _| !matches!(name.as_str(), "cpu" | "memory"));
        container["resources"][list] = Value::Object(kept);
    }
    container
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_may_only_grow() {
        let [one, two] = [json!({"key": "a"}), json!({"key": "b"})];
        let term = |expressions: &[&Value]| json!({"matchExpressions": expressions});
        assert!(has_only_additions(&term(&[&one, &two]), &term(&[&one])));
        assert!(!has_only_additions(&term(&[&two, &one]), &term(&[&one])));
        assert!(!has_only_additions(&term(&[&one]), &json!({})));
        assert!(has_only_additions(&json!({}), &json!({})));
    }

    #[test]
    fn sizes_besides_cores_and_memory_count() {
        let container = |cpu: &str, disk: &str| json!({"resources": {"limits": {"cpu": cpu, "ephemeral-storage": disk}}});
        let same =
            without_amounts(&container("1", "1Gi")) == without_amounts(&container("2", "1Gi"));
        assert!(same);
        assert_ne!(
            without_amounts(&container("1", "1Gi")),
            without_amounts(&container("1", "2Gi"))
        );
    }
}
