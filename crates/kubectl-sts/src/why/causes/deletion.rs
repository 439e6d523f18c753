//! Pods and claims whose deletion doesn't end.

use crate::model::Pod;
use crate::output::age;
use crate::why::case::Case;
use crate::why::finding::Finding;

use super::node;

/// Seconds after the grace period in which a kubelet normally removes a pod.
const SLACK_SECONDS: i64 = 30;
/// Seconds after the grace period from which on a command may help.
const OVERDUE_SECONDS: i64 = 5;

/// The cause for a pod that terminates.
pub(in crate::why) fn pod(case: Case<'_>, pod: &Pod) -> Finding {
    let (name, node_name) = (&pod.metadata.name, &pod.spec.node_name);
    let now = case.snapshot.now;
    if let Some(lost) = node::lost(case, pod) {
        return lost;
    }
    // The time at which the grace period ends.
    let deadline = pod.metadata.deletion_timestamp;
    let overdue = deadline.map_or(0, |deadline| now.duration_since(deadline).as_secs());
    if !pod.metadata.finalizers.is_empty() && (pod.is_finished() || overdue >= 0) {
        let finalizers = pod.metadata.finalizers.join(", ");
        let text = format!(
            "pod {name} is terminating, but its finalizers ({finalizers}) block its removal"
        );
        return Finding::stuck("pod-finalizer", text)
            .since(deadline)
            .resolved_by(case.kubectl(&without_finalizers(&format!("pod {name}"))))
            .but("the finalizer's owner normally removes it after its work");
    }
    if overdue < OVERDUE_SECONDS {
        let left = age(Some(now), deadline.unwrap_or(now));
        let text = format!("pod {name} is terminating; its grace period ends in {left}");
        return Finding::waiting("terminating", text);
    }
    let finding = if overdue < SLACK_SECONDS {
        let text = format!(
            "pod {name} is terminating; its grace period ended {} ago, and its kubelet has not \
             removed it yet",
            age(deadline, now)
        );
        Finding::waiting("terminating", text)
    } else {
        let text =
            format!("pod {name} still exists after its grace period: its kubelet doesn't stop it");
        Finding::stuck("pod-hangs", text)
    };
    finding
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
    let deleted = found.metadata.deleted_at();
    let foreign: Vec<&str> = found.foreign_finalizers().collect();
    if !foreign.is_empty() {
        let text = format!(
            "{text}, but its finalizers ({}) block its removal",
            foreign.join(", ")
        );
        return Finding::stuck("claim-finalizer", text)
            .since(deleted)
            .resolved_by(case.kubectl(&without_finalizers(&format!("pvc {claim}"))))
            .but("the volume's data may be deleted with the claim");
    }
    let users = case.snapshot.pods_with(claim);
    let mut users = users.filter(|user| !user.spec.node_name.is_empty());
    match users.next() {
        None => Finding::waiting("claim-deleted", text).since(deleted),
        Some(user) if user.metadata.deletion_timestamp.is_some() => {
            let finding = self::pod(case, user);
            let text = format!("{text}, and {}", finding.text);
            Finding { text, ..finding }
        }
        Some(user) => {
            let user = &user.metadata.name;
            let text = format!("claim {claim} is being deleted, but pod {user} still uses it");
            let mut finding = Finding::stuck("claim-deleted", text).since(deleted);
            finding.resolve.extend(case.delete_pod(user));
            finding.but("the claim's deletion can't be stopped: the pod gets a new, empty volume")
        }
    }
}

fn without_finalizers(object: &str) -> String {
    format!(r#"patch {object} --type=merge -p '{{"metadata":{{"finalizers":null}}}}'"#)
}
