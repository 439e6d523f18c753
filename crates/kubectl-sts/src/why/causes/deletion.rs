//! Pods and claims whose deletion doesn't end.

use crate::model::Pod;
use crate::output::age;
use crate::why::case::Case;
use crate::why::finding::Finding;

/// Seconds after the grace period in which a kubelet normally removes a pod.
const SLACK_SECONDS: i64 = 30;
/// The finalizer of claims in use.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// The cause for a pod that terminates.
pub(in crate::why) fn pod(case: Case<'_>, pod: &Pod) -> Finding {
    let (name, node_name) = (&pod.metadata.name, &pod.spec.node_name);
    let now = case.snapshot.now;
    // The time at which the grace period ends.
    let deadline = pod.metadata.deletion_timestamp;
    let node = case.snapshot.node(node_name);
    if let Some(not_ready) = node.and_then(|node| node.not_ready()) {
        let text = format!("pod {name} terminates on node {node_name}, which is lost");
        let taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
        return Finding::stuck("node-lost", text)
            .shown_by([format!(
                "node {node_name} Ready: {}: {}",
                not_ready.status, not_ready.message
            )])
            .since(not_ready.last_transition_time)
            .resolved_by(format!("kubectl taint node {node_name} {taint}"))
            .but(
                "only once the node is off: a pod that still runs would write to the same volume",
            );
    }
    let overdue = deadline.map_or(0, |deadline| now.duration_since(deadline).as_secs());
    let is_stopped = pod.status.phase == "Succeeded" || pod.status.phase == "Failed";
    if !pod.metadata.finalizers.is_empty() && (is_stopped || overdue >= 0) {
        let finalizers = pod.metadata.finalizers.join(", ");
        let text = format!(
            "pod {name} is terminating, but its finalizers ({finalizers}) block its removal"
        );
        return Finding::stuck("pod-finalizer", text)
            .since(deadline)
            .resolved_by(case.kubectl(&without_finalizers(&format!("pod {name}"))))
            .but("the finalizer's owner normally removes it after its work");
    }
    if overdue < SLACK_SECONDS {
        let left = age(Some(now), deadline.unwrap_or(now));
        let text = format!("pod {name} is terminating; its grace period ends in {left}");
        return Finding::waiting("terminating", text);
    }
    let text =
        format!("pod {name} still exists after its grace period: its kubelet doesn't stop it");
    Finding::stuck("pod-hangs", text)
        .since(deadline)
        .resolved_by(case.kubectl(&format!("delete pod {name} --grace-period=0 --force")))
        .but(format!("only once no container of the pod runs on node {node_name}: two would write to the same volume"))
}

/// The cause for a claim that must be removed before its pod is created.
pub(in crate::why) fn claim(case: Case<'_>, pod: &str, claim: &str) -> Finding {
    let text = format!("claim {claim} of an earlier pod {pod} is being deleted");
    let Some(found) = case.snapshot.claim(claim) else {
        return Finding::waiting("claim-deleted", text);
    };
    let deleted = found.metadata.deletion_timestamp;
    let finalizers = found.metadata.finalizers.iter();
    let foreign: Vec<&str> = finalizers
        .map(String::as_str)
        .filter(|it| *it != PROTECTION)
        .collect();
    if foreign.is_empty() {
        return Finding::waiting("claim-deleted", text).since(deleted);
    }
    let text = format!(
        "{text}, but its finalizers ({}) block its removal",
        foreign.join(", ")
    );
    Finding::stuck("claim-finalizer", text)
        .since(deleted)
        .resolved_by(case.kubectl(&without_finalizers(&format!("pvc {claim}"))))
        .but("the volume's data may be deleted with the claim")
}

fn without_finalizers(object: &str) -> String {
    format!(r#"patch {object} --type=merge -p '{{"metadata":{{"finalizers":null}}}}'"#)
}
