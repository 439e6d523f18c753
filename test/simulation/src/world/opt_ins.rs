//! What runs with opt-ins need: the permission to evict, and an end of budgets and gates.

use kube_test_control_plane::ApiServer;
use serde_json::{Value, json};

use super::user::{NAMESPACE, User};
use crate::plan::opt_ins::{HOLD_KEY, annotation, choose, hold};

/// Name of the role that may evict pods.
const EVICTOR: &str = "evictor";

/// Lets the instances evict pods.
pub(super) async fn permit_evictions(user: &User) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": EVICTOR},
        "rules": [{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}],
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

/// Ends what may hold pods back for ever: users lift all gates, correct a gate that no pod can lift, and
/// delete the disruption budgets, and the instances may evict.
pub(super) async fn calm(user: &User, server: &ApiServer) {
    permit_evictions(user).await;
    let listed = |resource: &str| server.store().list(resource, NAMESPACE).1;
    for budget in listed("poddisruptionbudgets") {
        user.delete("poddisruptionbudgets", &budget.key.name).await;
    }
    for set in listed("statefulsets") {
        let set = set.value();
        let gate = text(&set, "annotations", &annotation("removal-gate"));
        let name = set.pointer("/metadata/name").and_then(Value::as_str);
        if let Some(name) = name.filter(|_| gate.is_some_and(|it| !it.starts_with(HOLD_KEY))) {
            user.act(&choose(name, "removal-gate", None)).await;
        }
    }
    for pod in listed("pods") {
        for place in ["labels", "annotations"] {
            if text(&pod.value(), place, HOLD_KEY).is_some() {
                user.act(&hold(&pod.key.name, place, None)).await;
            }
        }
    }
}

/// Returns a label or an annotation.
fn text<'a>(object: &'a Value, place: &str, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get(place)?.get(key)?.as_str()
}
