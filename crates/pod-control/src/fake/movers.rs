//! Changes to a fake's pods as a kubelet or a user makes them: phases, readiness, deletion.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::time::format_seconds;
use serde_json::{Value, json};
use statefulset_controller_util::pod::{Pod, REVISION_LABEL};
use statefulset_controller_util::stateful_set::StatefulSet;

use super::FakeObjectManager;
use crate::stateful_set_utils::NewPod;
use crate::stateful_set_utils::{Ordinal, ordinal, pod_name};

/// Returns the pod that a set wants for an ordinal, without uid, phase and revision.
///
/// Upstream: `newStatefulSetPod`.
pub fn stateful_set_pod(set: &StatefulSet, ordinal: i32) -> Value {
    let pod = NewPod::new(set, "", Ordinal::from(ordinal)).to_value();
    let mut pod = pod.expect("a test's template is JSON");
    if let Value::Object(labels) = &mut pod["metadata"]["labels"] {
        labels.remove(REVISION_LABEL);
    }
    pod
}

/// Changes to pods. Each change stores a new object, so existing lists keep the old one.
impl FakeObjectManager {
    /// Returns the pods that the set selects, by ascending ordinal.
    pub fn pods_of(&self, set: &StatefulSet) -> Vec<Arc<Pod>> {
        let selector = set
            .spec
            .selector
            .compiled()
            .expect("a test's set has a selector");
        let mut pods = self.pods.cache().list();
        pods.retain(|pod| *pod.namespace == *set.namespace() && selector.matches(&pod.labels));
        pods.sort_by_key(|pod| ordinal(&pod.name));
        pods
    }

    /// Sets a pod's phase and keeps its conditions.
    ///
    /// Upstream: `setPodPending`, `setPodRunning`.
    pub fn set_pod_phase(&self, set: &StatefulSet, ordinal: i32, phase: &str) {
        self.change_pod(set, ordinal, |pod| pod["status"]["phase"] = phase.into());
    }

    /// Sets a pod's Ready condition and keeps its phase. The transition time is `now` unless the
    /// condition already has this status.
    ///
    /// Upstream: `setPodReadyCondition`.
    pub fn set_pod_ready(&self, set: &StatefulSet, ordinal: i32, ready: bool, now: Timestamp) {
        self.change_pod(set, ordinal, |pod| {
            let condition = ready_condition(ready, now);
            if pod["status"]["conditions"][0]["status"] != condition["status"] {
                pod["status"]["conditions"] = json!([condition]);
            }
        });
    }

    /// Makes a pod ready since a moment and keeps its phase.
    ///
    /// Upstream: `setPodAvailable`.
    pub fn set_pod_ready_since(&self, set: &StatefulSet, ordinal: i32, since: Timestamp) {
        self.change_pod(set, ordinal, |pod| {
            pod["status"]["conditions"] = json!([ready_condition(true, since)]);
        });
    }

    /// Replaces a pod with a terminating pod that runs and is ready. It has no revision.
    ///
    /// Upstream: `addTerminatingPod`.
    pub fn add_terminating_pod(&self, set: &StatefulSet, ordinal: i32, now: Timestamp) {
        let mut pod = stateful_set_pod(set, ordinal);
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        pod["metadata"]["uid"] = format!("{name}-uid").into();
        pod["metadata"]["deletionTimestamp"] = format_seconds(now).into();
        pod["status"] = json!({"phase": "Running", "conditions": [ready_condition(true, now)]});
        self.pods.put(pod);
    }

    /// Replaces a pod with a terminating pod that has no other data, not even a uid.
    ///
    /// Upstream: `setPodTerminated`.
    pub fn set_pod_terminated(&self, set: &StatefulSet, ordinal: i32, now: Timestamp) {
        let mut pod = stateful_set_pod(set, ordinal);
        pod["metadata"]["deletionTimestamp"] = format_seconds(now).into();
        self.pods.put(pod);
    }

    /// Changes a pod and increments its resource version.
    pub fn change_pod(&self, set: &StatefulSet, ordinal: i32, change: impl FnOnce(&mut Value)) {
        let name = pod_name(set, Ordinal::from(ordinal));
        let stored = self.pods.json(set.namespace(), &name);
        let mut json = stored.unwrap_or_else(|| panic!("pod {name} not found"));
        let version = json["metadata"]["resourceVersion"].as_str();
        let version: u64 = version
            .and_then(|version| version.parse().ok())
            .unwrap_or(0);
        json["metadata"]["resourceVersion"] = (version + 1).to_string().into();
        change(&mut json);
        self.pods.put(json);
    }
}

fn ready_condition(ready: bool, since: Timestamp) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({"type": "Ready", "status": status, "lastTransitionTime": format_seconds(since)})
}
