//! Pods on lost nodes.

use crate::model::Pod;
use crate::why::case::Case;
use crate::why::finding::Finding;

/// The taint of a node that is off: its pods are removed without its kubelet.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Seconds in which a node may return by itself.
const PATIENCE_SECONDS: i64 = 60;

/// The cause if the pod's node is lost.
pub(in crate::why) fn lost(case: Case<'_>, pod: &Pod) -> Option<Finding> {
    let node = case.snapshot.node(&pod.spec.node_name)?;
    let not_ready = node.not_ready()?;
    let (name, node_name) = (&pod.metadata.name, &node.metadata.name);
    let since = not_ready.last_transition_time;
    let terminates = pod.metadata.deletion_timestamp.is_some();
    let text = if terminates {
        format!("pod {name} terminates on node {node_name}, which is lost")
    } else {
        format!("pod {name} is on node {node_name}, which is lost")
    };
    let is_new = since.is_some_and(|since| case.seconds_since(since) < PATIENCE_SECONDS);
    let finding = if is_new && !terminates {
        Finding::waiting("node-lost", text)
    } else {
        Finding::stuck("node-lost", text)
    };
    let finding = finding.since(since).shown_by([format!(
        "node {node_name} Ready: {}: {}",
        not_ready.status, not_ready.message
    )]);
    if node.spec.taints.iter().any(|it| it.key == OUT_OF_SERVICE) {
        return Some(finding.but(format!(
            "node {node_name} is already out of service: the pod garbage collector removes the pod"
        )));
    }
    let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    Some(
        finding
            .resolved_by(format!("kubectl taint node {node_name} {taint}"))
            .but("only once the node is off: a pod that still runs would write to the same volume"),
    )
}
