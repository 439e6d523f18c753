//! Sets and waits of upstream's integration tests.

use std::time::Duration;

use jiff::Timestamp;
use kube_apimachinery::time::format_seconds;
use serde_json::{Value, json};
use statefulset_client::resource::{PODS, STATEFUL_SETS};

use crate::poll::Patience;
use crate::space::Space;

/// Time limit for any wait of these tests.
pub const PATIENCE: Patience = Patience(Duration::from_secs(60));
/// Labels of the pods.
pub const LABELS: &str = "foo=bar";

/// A set with one claim per pod; a control plane without nodes runs none of its pods. As in
/// upstream's, the claim template and the volume have different names, so that pods have three
/// volumes.
///
/// Upstream: `newSTS`.
pub fn stateful_set(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "podManagementPolicy": "Parallel",
            "replicas": replicas,
            "selector": {"matchLabels": {"foo": "bar"}},
            "serviceName": "fake-service-name",
            "template": {
                "metadata": {"labels": {"foo": "bar"}},
                "spec": {
                    "containers": [{
                        "name": "fake-name", "image": "fakeimage",
                        "volumeMounts": [
                            {"name": "datadir", "mountPath": "/data/"},
                            {"name": "home", "mountPath": "/home"},
                        ],
                    }],
                    "volumes": [
                        {"name": "datadir", "persistentVolumeClaim": {"claimName": "fake-pvc-name"}},
                        {"name": "home", "hostPath": {"path": "/tmp/home"}},
                    ],
                },
            },
            "updateStrategy": {"type": "RollingUpdate"},
            "volumeClaimTemplates": [{
                "metadata": {
                    "name": "fake-pvc-name",
                    "annotations": {"volume.alpha.kubernetes.io/storage-class": "anything"},
                },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1"}},
                },
            }],
        },
    })
}

/// Headless service of the pods.
///
/// Upstream: `newHeadlessService`.
pub fn headless_service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "clusterIP": "None",
            "ports": [{"port": 80, "name": "http"}],
            "selector": {"foo": "bar"},
        },
    })
}

/// A count in the status; 0 if it is omitted.
pub fn count(set: &Value, member: &str) -> i64 {
    set["status"][member].as_i64().unwrap_or(0)
}

/// Name of the object.
pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Uid of the object.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Phase of the pod.
pub fn phase(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or_default()
}

/// Pods of upstream's integration tests.
pub async fn list_pods(space: &Space) -> Vec<Value> {
    space.list(&PODS, LABELS).await
}

/// Waits until the controller has observed this version of the set and the desired number of
/// pods exists.
///
/// Upstream: `waitSTSStable`.
#[expect(
    clippy::missing_panics_doc,
    reason = "a test harness panics on failures"
)]
pub async fn until_stable(space: &Space, set: &Value) -> Value {
    let generation = set["metadata"]["generation"].as_i64();
    let generation = generation.expect("a stored set has a generation");
    let stable = async || {
        let set = space.get(&STATEFUL_SETS, name(set)).await;
        let seen = count(&set, "observedGeneration") >= generation;
        let wanted = set["spec"]["replicas"].as_i64();
        (seen && Some(count(&set, "replicas")) == wanted).then_some(set)
    };
    PATIENCE.until("the set is stable", stable).await
}

/// Creates a set and waits until it is stable.
pub async fn create_stable(space: &Space, set: &Value) -> Value {
    let created = space.create(&STATEFUL_SETS, set).await;
    until_stable(space, &created).await
}

/// Scales a set and waits until it is stable.
///
/// Upstream: `scaleSTS`.
pub async fn scale_stable(space: &Space, name: &str, replicas: u32) -> Value {
    let set = scale_only(space, name, replicas).await;
    until_stable(space, &set).await
}

/// Scales a set.
pub async fn scale_only(space: &Space, name: &str, replicas: u32) -> Value {
    let scale = |set: &mut Value| set["spec"]["replicas"] = replicas.into();
    space.change(&STATEFUL_SETS, name, "", scale).await
}

/// Waits until the set's status has these counts.
pub async fn until_status(space: &Space, set: &str, wanted: &[(&str, i64)]) -> Value {
    let as_wanted = async || {
        let set = space.get(&STATEFUL_SETS, set).await;
        let all = wanted
            .iter()
            .all(|(member, wanted)| count(&set, member) == *wanted);
        all.then_some(set)
    };
    let what = format!("the status of {set} has {wanted:?}");
    PATIENCE.until(&what, as_wanted).await
}

/// Makes a pod run, ready or not since this time, instead of the kubelet.
///
/// Upstream: `setPodsReadyCondition`.
pub async fn set_pod_ready(space: &Space, pod: &str, ready: bool, since: Timestamp) {
    let status = if ready { "True" } else { "False" };
    let condition =
        json!({"type": "Ready", "status": status, "lastTransitionTime": format_seconds(since)});
    space
        .change(&PODS, pod, "status", |pod| {
            pod["status"]["phase"] = "Running".into();
            pod["status"]["conditions"] = json!([condition]);
        })
        .await;
}

/// Sets the phase of a pod.
pub async fn set_pod_phase(space: &Space, pod: &str, phase: &str) {
    space
        .change(&PODS, pod, "status", |pod| {
            pod["status"]["phase"] = phase.into();
        })
        .await;
}

/// Replaces the finalizers of a pod.
pub async fn set_finalizers(space: &Space, pod: &str, finalizers: &[&str]) {
    space
        .change(&PODS, pod, "", |pod| {
            pod["metadata"]["finalizers"] = json!(finalizers);
        })
        .await;
}
