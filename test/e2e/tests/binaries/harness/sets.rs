//! Manifests of test sets.

use serde_json::{Value, json};

/// A set whose service and label have its name, with one container of `busybox:1`.
pub(crate) fn set(name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "busybox:1"}]},
            },
        },
    })
}

/// The same with a claim `www` of 1 GiB per pod.
pub(crate) fn set_with_claims(name: &str, replicas: usize) -> Value {
    let mut set = set(name, replicas);
    set["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": {"name": "www"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }]);
    set
}
