//! The status of a replica set.

use std::time::Duration;

use jiff::Timestamp;
use kube_apimachinery::pod::Readiness;
use kube_apimachinery::time;
use kube_test_control_plane_api::members::{list_at, number_at, text, text_at};
use serde_json::{Map, Value, json};

/// The condition of a set whose pods can't be created.
pub(super) const FAILURE: &str = "ReplicaFailure";

/// Returns the status of a set with these active pods, and the time until a pod becomes available.
///
/// Upstream: `calculateStatus` of the replica set controller.
pub(super) fn of<'a>(
    set: &Value,
    pods: impl Iterator<Item = &'a Value>,
    now: Timestamp,
) -> (Value, Option<Duration>) {
    let min_ready = number_at(set, "/spec/minReadySeconds");
    let min_ready = i32::try_from(min_ready).unwrap_or(i32::MAX);
    let wanted = labels(set, "/spec/template/metadata/labels");
    let (mut all, mut labelled, mut ready, mut available) = (0, 0, 0, 0);
    let mut next: Option<Duration> = None;
    for pod in pods {
        all += 1;
        let found = labels(pod, "/metadata/labels");
        let is_labelled = wanted
            .into_iter()
            .flatten()
            .all(|(key, value)| found.is_some_and(|found| found.get(key) == Some(value)));
        labelled += i64::from(is_labelled);
        let readiness = readiness(pod);
        ready += i64::from(readiness.ready);
        if readiness.is_available(min_ready, now) {
            available += 1;
        } else if let Some(moment) = readiness.available_at(min_ready) {
            let wait = moment.duration_since(now).unsigned_abs();
            next = Some(next.map_or(wait, |next| next.min(wait)));
        }
    }
    let status = json!({
        "replicas": all,
        "fullyLabeledReplicas": labelled,
        "readyReplicas": ready,
        "availableReplicas": available,
        "observedGeneration": number_at(set, "/metadata/generation"),
    });
    (status, next)
}

fn labels<'a>(object: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    object.pointer(pointer).and_then(Value::as_object)
}

/// Returns the readiness of a pod.
pub(crate) fn readiness(pod: &Value) -> Readiness {
    let ready = list_at(pod, "/status/conditions").find(|it| text(it, "type") == "Ready");
    Readiness {
        ready: ready.is_some_and(|it| text(it, "status") == "True"),
        last_transition_time: ready.and_then(|it| time::parse(text(it, "lastTransitionTime")).ok()),
    }
}

/// Returns the fields of a status that differ from the stored one. A missing counter is zero.
pub(crate) fn difference(object: &Value, status: Value) -> Value {
    let found = |member: &str| object.pointer(&format!("/status/{member}"));
    let Value::Object(mut status) = status else {
        return status;
    };
    status.retain(|member, value| match found(member) {
        Some(found) => found != value,
        None => *value != 0 && !value.is_null(),
    });
    Value::Object(status)
}

/// Returns the status of a set whose pods can't be created.
pub(super) fn failure(message: &str, now: &str) -> Value {
    json!({"conditions": [{
        "type": FAILURE,
        "status": "True",
        "reason": "FailedCreate",
        "message": message,
        "lastTransitionTime": now,
    }]})
}

pub(super) fn has_failure(set: &Value) -> bool {
    list_at(set, "/status/conditions").any(|it| text_at(it, "/type") == FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_counts_as_available_after_its_time() {
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        let pod = |since: &str| {
            json!({
                "metadata": {"labels": {"app": "a"}},
                "status": {"conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": since},
                ]},
            })
        };
        let pods = [
            pod("2026-01-01T00:00:00Z"),
            pod("2026-01-01T00:00:08Z"),
            json!({}),
        ];
        let set = json!({
            "metadata": {"generation": 2},
            "spec": {
                "minReadySeconds": 5, "template": {"metadata": {"labels": {"app": "a"}}},
            },
        });
        let (status, wait) = of(&set, pods.iter(), now);
        let expected = json!({
            "replicas": 3, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 1,
            "observedGeneration": 2,
        });
        assert_eq!((&status, wait), (&expected, Some(Duration::from_secs(3))));
        let stored = json!({"status": {"replicas": 3, "readyReplicas": 1}});
        let expected = json!({
            "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 1,
            "observedGeneration": 2,
        });
        assert_eq!(difference(&stored, status), expected);
    }
}
