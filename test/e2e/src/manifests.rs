//! Manifests of upstream's e2e tests.

use serde_json::{Map, Value, json};

/// Initial image of every container.
pub const OLD_IMAGE: &str = "registry.k8s.io/e2e-test-images/agnhost:2.55";
/// Image of updates.
pub const NEW_IMAGE: &str = "registry.k8s.io/e2e-test-images/agnhost:2.63.0";
/// Name of the headless service.
pub const SERVICE: &str = "test";
/// Pod labels of most tests.
pub const LABELS: [(&str, &str); 2] = [("foo", "bar"), ("baz", "blah")];
/// Finalizer that keeps a deleted pod terminating.
pub const FINALIZER: &str = "example.com/test-finalizer";

/// Headless service of most tests.
///
/// Upstream: `CreateStatefulSetService`.
pub fn headless_service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE},
        "spec": {
            "clusterIP": "None",
            "ports": [{"port": 80, "name": "http"}],
            "selector": Map::from_iter(LABELS.map(|(key, value)| (key.to_owned(), json!(value)))),
        },
    })
}

/// A set without claims, with the usual labels.
pub fn plain(name: &str, replicas: u32) -> Value {
    stateful_set(name, replicas, &[], &[], &LABELS)
}

/// The set of most tests: one claim and one host folder per pod.
pub fn with_claims(name: &str, replicas: u32) -> Value {
    let (claims, folders) = ([("datadir", "/data/")], [("home", "/home")]);
    stateful_set(name, replicas, &claims, &folders, &LABELS)
}

/// A set with these labels, a claim template per mount of the first kind, and a host folder per
/// mount of the second.
///
/// Upstream: `NewStatefulSet`.
pub fn stateful_set(
    name: &str,
    replicas: u32,
    claims: &[(&str, &str)],
    folders: &[(&str, &str)],
    labels: &[(&str, &str)],
) -> Value {
    let mount = |(name, path): &(&str, &str)| json!({"name": name, "mountPath": path});
    let mounts: Vec<Value> = claims.iter().chain(folders).map(mount).collect();
    let volume = |(name, _): &(&str, &str)| {
        let path = format!("/tmp/{name}");
        json!({"name": name, "hostPath": {"path": path}})
    };
    let volumes: Vec<Value> = folders.iter().map(volume).collect();
    let template = |(name, _): &(&str, &str)| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "10Gi"}},
            },
        })
    };
    let templates: Vec<Value> = claims.iter().map(template).collect();
    let label = |(key, value): &(&str, &str)| ((*key).to_owned(), json!(value));
    let labels: Map<String, Value> = labels.iter().map(label).collect();
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "serviceName": SERVICE,
            "template": {
                "metadata": {"labels": labels, "annotations": {}},
                "spec": {
                    "containers": [{
                        "name": "webserver", "image": OLD_IMAGE, "args": ["test-webserver"],
                        "volumeMounts": mounts,
                    }],
                    "volumes": volumes,
                },
            },
            "updateStrategy": {"type": "RollingUpdate"},
            "volumeClaimTemplates": templates,
        },
    })
}

/// Adds an HTTP readiness probe. The simulated kubelet reads no files; tests set the probe's
/// result.
///
/// Upstream: `setHTTPProbe`.
#[must_use]
pub fn probed(mut set: Value) -> Value {
    set["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = json!({
        "httpGet": {"path": "/localhost.crt", "port": 80},
        "periodSeconds": 1, "successThreshold": 1, "failureThreshold": 1,
    });
    set
}

/// Keeps every new pod unready until it is resumed.
///
/// Upstream: `PauseNewPods`.
#[must_use]
pub fn paused(mut set: Value) -> Value {
    let template = &mut set["spec"]["template"];
    template["spec"]["containers"][0]["readinessProbe"] = json!({
        "exec": {"command": ["test", "-f", "/data/statefulset-continue"]},
        "periodSeconds": 1, "successThreshold": 1, "failureThreshold": 1,
    });
    template["metadata"]["annotations"]["kubelet.test-control-plane/outcome"] =
        "never-ready".into();
    set
}

/// Sets the claim retention policy.
#[must_use]
pub fn retaining(mut set: Value, policy: Value) -> Value {
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = policy;
    set
}

/// Sets the start ordinal.
#[must_use]
pub fn starting_at(mut set: Value, ordinal: u32) -> Value {
    set["spec"]["ordinals"] = json!({"start": ordinal});
    set
}
