//! The sets of upstream's integration tests, and what these wait for.

use std::time::Duration;

use jiff::Timestamp;
use kube_apimachinery::time::format_seconds;
use serde_json::{Value, json};
use statefulset_client::resource::{PODS, STATEFUL_SETS};

use crate::poll::Patience;
use crate::space::Space;

/// How long these tests wait for anything.
pub const PATIENCE: Patience = Patience(Duration::from_secs(60));
/// The labels of the pods.
pub const LABELS: &str = "foo=bar";

/// A set whose pods have a claim each; a control plane without nodes runs none of them. As
/// upstream's, the claim template bears another name than the volume, so that pods have three
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

/// The service that governs the pods.
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

/// A count of the status; one that is left out is 0.
pub fn count(set: &Value, member: &str) -> i64 {
    set["status"][member].as_i64().unwrap_or(0)
}

/// The object's name.
pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The object's uid.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// The pod's phase.
pub fn phase(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or_default()
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a test's harness panics where the test fails"
)]
impl Space {
    /// The pods of upstream's integration tests.
    pub async fn pods(&self) -> Vec<Value> {
        self.list(&PODS, LABELS).await
    }

    /// Waits until the controller has seen this version of the set and as many pods are there as it
    /// wants.
    ///
    /// Upstream: `waitSTSStable`.
    pub async fn until_stable(&self, set: &Value) -> Value {
        let generation = set["metadata"]["generation"].as_i64();
        let generation = generation.expect("a stored set has a generation");
        let stable = async || {
            let set = self.get(&STATEFUL_SETS, name(set)).await;
            let seen = count(&set, "observedGeneration") >= generation;
            let wanted = set["spec"]["replicas"].as_i64();
            (seen && Some(count(&set, "replicas")) == wanted).then_some(set)
        };
        PATIENCE.until("the set is stable", stable).await
    }

    /// Creates a set and waits until it is stable.
    pub async fn create_stable(&self, set: &Value) -> Value {
        let created = self.create(&STATEFUL_SETS, set).await;
        self.until_stable(&created).await
    }

    /// Gives a set another number of replicas and waits until it is stable.
    ///
    /// Upstream: `scaleSTS`.
    pub async fn scale_stable(&self, name: &str, replicas: u32) -> Value {
        let set = self.scale_only(name, replicas).await;
        self.until_stable(&set).await
    }

    /// Gives a set another number of replicas.
    pub async fn scale_only(&self, name: &str, replicas: u32) -> Value {
        let scale = |set: &mut Value| set["spec"]["replicas"] = replicas.into();
        self.change(&STATEFUL_SETS, name, "", scale).await
    }

    /// Waits until the set's status is so.
    pub async fn until_status(&self, set: &str, wanted: &[(&str, i64)]) -> Value {
        let as_wanted = async || {
            let set = self.get(&STATEFUL_SETS, set).await;
            let all = wanted
                .iter()
                .all(|(member, wanted)| count(&set, member) == *wanted);
            all.then_some(set)
        };
        let what = format!("the status of {set} has {wanted:?}");
        PATIENCE.until(&what, as_wanted).await
    }

    /// Makes a pod run, ready or not since a moment: what a kubelet would do.
    ///
    /// Upstream: `setPodsReadyCondition`.
    pub async fn set_pod_ready(&self, pod: &str, ready: bool, since: Timestamp) {
        let status = if ready { "True" } else { "False" };
        let condition =
            json!({"type": "Ready", "status": status, "lastTransitionTime": format_seconds(since)});
        self.change(&PODS, pod, "status", |pod| {
            pod["status"]["phase"] = "Running".into();
            pod["status"]["conditions"] = json!([condition]);
        })
        .await;
    }

    /// Gives a pod a phase.
    pub async fn set_pod_phase(&self, pod: &str, phase: &str) {
        self.change(&PODS, pod, "status", |pod| {
            pod["status"]["phase"] = phase.into();
        })
        .await;
    }

    /// Puts finalizers on a pod, in place of those it has.
    pub async fn set_finalizers(&self, pod: &str, finalizers: &[&str]) {
        self.change(&PODS, pod, "", |pod| {
            pod["metadata"]["finalizers"] = json!(finalizers);
        })
        .await;
    }
}
