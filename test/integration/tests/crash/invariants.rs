//! Invariants of every run, under any fault.

use kube_test_control_plane::audit::AuditEntry;
use kube_test_control_plane::route::Verb;
use serde_json::Value;

use crate::run::Run;

impl Run {
    /// Checks the writes and the pods' life cycles.
    pub(crate) fn assert_invariants(&self) {
        if self.scenario.keeps_order() {
            self.pods.assert_in_order(&self.what);
        }
        for (position, write) in self.writes.iter().enumerate() {
            let what = format!("{}: {}", self.what, write.summary());
            assert_ne!(write.code, 403, "{what}");
            match (write.resource.as_str(), write.verb) {
                ("pods", Verb::Delete) => {
                    // I-2 and I-4: no other pod of this name, and no forced deletion.
                    let body = write.body_value();
                    assert!(body["preconditions"]["uid"].is_string(), "{what}");
                    assert_ne!(body["gracePeriodSeconds"], 0, "{what}");
                    if self.scenario.deletes_claims() {
                        self.assert_claim_was_doomed(position, &write.name);
                    }
                }
                // V-1: only the garbage collector deletes claims.
                ("persistentvolumeclaims", Verb::Delete) => panic!("{what}"),
                ("statefulsets", Verb::Update) => assert_counts(write, &what),
                _ => {}
            }
        }
    }

    /// V-4: the owner of a pod's claim is stored before the pod is deleted.
    fn assert_claim_was_doomed(&self, position: usize, pod: &str) {
        let claim = format!("data-{pod}");
        let mut before = self.writes[..position].iter();
        let was_doomed = before.any(|write| {
            let body = write.body_value();
            let owners = body["metadata"]["ownerReferences"].as_array();
            let mut owners = owners.into_iter().flatten();
            write.name == claim && write.code == 200 && owners.any(|owner| owner["name"] == pod)
        });
        assert!(
            was_doomed,
            "{}: {pod} is deleted before its claim has an owner",
            self.what
        );
    }
}

/// T-1: the counts of a status are possible.
fn assert_counts(write: &AuditEntry, what: &str) {
    let status = write.body_value()["status"].clone();
    let count = |member: &str| status.get(member).and_then(Value::as_i64).unwrap_or(0);
    let [available, ready, replicas] =
        ["availableReplicas", "readyReplicas", "replicas"].map(count);
    let is_possible = 0 <= available && available <= ready && ready <= replicas;
    assert!(is_possible, "{what}: {status}");
    assert!(
        count("currentReplicas") >= 0 && count("updatedReplicas") >= 0,
        "{what}: {status}"
    );
}
