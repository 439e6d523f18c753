//! Users in runs with opt-ins: they create storage classes, permit evictions, and end budgets and gates.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use http::Method;
use kube_test_control_plane::ApiServer;
use serde_json::{Value, json};

use super::pods::is_dead;
use super::user::{NAMESPACE, User};
use crate::plan::opt_ins::{
    FIXED, GROWING, HOLD_KEY, RESIZE, RESIZE_DELAY, WITH_POD, annotation, choose, hold, resize_as,
};

/// Name of the role that may evict pods.
const EVICTOR: &str = "evictor";

/// Lets the instances evict and resize pods.
pub(super) async fn permit_evictions(user: &User) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": EVICTOR},
        "rules": [
            {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": EVICTOR},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": EVICTOR},
        "subjects": [{
            "kind": "ServiceAccount",
            "namespace": "kube-system",
            "name": "statefulset-controller",
        }],
    });
    for (resource, object) in [("roles", role), ("rolebindings", binding)] {
        user.create(resource, &object).await;
    }
}

/// Creates the storage classes of plans.
pub(super) async fn create_classes(user: &User) {
    for name in [GROWING, WITH_POD, FIXED] {
        let mut class = json!({
            "metadata": {"name": name},
            "provisioner": "example.com/provisioner",
            "allowVolumeExpansion": name != FIXED,
        });
        if name == WITH_POD {
            class["parameters"] = json!({"expansion": "with-pod"});
        }
        user.request(
            Method::POST,
            "/apis/storage.k8s.io/v1/storageclasses",
            &class,
        )
        .await;
    }
}

/// Ends what may hold pods back indefinitely: users lift all gates, correct a gate that no pod can lift,
/// delete the disruption budgets, the pods that wait for the end of their own claims and the broken
/// ones that a scale-down waits for, and the instances may evict.
pub(super) async fn calm(user: &User, server: &ApiServer) {
    permit_evictions(user).await;
    let listed = |resource: &str| server.store().list(resource, NAMESPACE).1;
    for budget in listed("poddisruptionbudgets") {
        user.delete("poddisruptionbudgets", &budget.key.name).await;
    }
    let mut wanted = BTreeMap::new();
    for set in listed("statefulsets") {
        wanted.insert(Arc::clone(&set.key.name), ordinals(&set.value()));
        let set = set.value();
        let gate = text(&set, "annotations", &annotation("removal-gate"));
        let name = set.pointer("/metadata/name").and_then(Value::as_str);
        if let Some(name) = name.filter(|_| gate.is_some_and(|it| !it.starts_with(HOLD_KEY))) {
            user.act(&choose(name, "removal-gate", None)).await;
        }
    }
    let is_going = |claim: &Value| claim.pointer("/metadata/deletionTimestamp").is_some();
    let claims = listed("persistentvolumeclaims");
    let going: BTreeSet<_> = claims
        .iter()
        .filter(|claim| is_going(&claim.value()))
        .map(|claim| Arc::clone(&claim.key.name))
        .collect();
    for pod in listed("pods") {
        // As upstream, the sync of its set fails before anything could be repaired.
        let value = pod.value();
        let is_pending = value.pointer("/status/phase") == Some(&json!("Pending"));
        let waits = is_pending && claim_names(&value).any(|claim| going.contains(claim));
        if waits || is_condemned(&wanted, &pod.key.name) && is_broken(&value) {
            user.delete_pod(&pod.key.name).await;
            continue;
        }
        for name in [RESIZE, RESIZE_DELAY] {
            if text(&pod.value(), "annotations", name).is_some() {
                user.act(&resize_as(&pod.key.name, name, None)).await;
            }
        }
        for place in ["labels", "annotations"] {
            if text(&pod.value(), place, HOLD_KEY).is_some() {
                user.act(&hold(&pod.key.name, place, None)).await;
            }
        }
    }
}

/// Returns the ordinals of the pods that a set wants.
fn ordinals(set: &Value) -> Range<i64> {
    let number = |pointer: &str| set.pointer(pointer).and_then(Value::as_i64);
    let start = number("/spec/ordinals/start").unwrap_or(0);
    start..start + number("/spec/replicas").unwrap_or(1)
}

/// Reports whether a set doesn't want a pod. The scale-down of an ordered set with two broken pods never
/// ends, as upstream.
fn is_condemned(wanted: &BTreeMap<Arc<str>, Range<i64>>, pod: &str) -> bool {
    let found = pod.rsplit_once('-').and_then(|(set, ordinal)| {
        let ordinal: i64 = ordinal.parse().ok()?;
        Some(!wanted.get(set)?.contains(&ordinal))
    });
    found.unwrap_or(false)
}

/// Reports whether a pod has ended or never becomes ready.
fn is_broken(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    is_dead(pod) || matches!(phase, Some("Failed" | "Succeeded"))
}

/// Returns the names of the claims in a pod's volumes.
fn claim_names(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let names = volumes.into_iter().flatten();
    names.filter_map(|it| it.pointer("/persistentVolumeClaim/claimName")?.as_str())
}

/// Returns a label or an annotation.
fn text<'a>(object: &'a Value, place: &str, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get(place)?.get(key)?.as_str()
}
