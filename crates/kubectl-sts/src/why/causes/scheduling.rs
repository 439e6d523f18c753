//! Pods without a node.

use crate::model::{Node, Pod};
use crate::why::case::Case;
use crate::why::finding::Finding;

/// Prefix of the taints that the node controller sets and removes.
const SYSTEM_TAINT: &str = "node.kubernetes.io/";

/// The reason why a pod has no node, if it has none.
pub(in crate::why) fn find(case: Case<'_>, pod: &Pod) -> Option<Finding> {
    let condition = pod
        .condition("PodScheduled")
        .filter(|it| it.status == "False")?;
    let name = &pod.metadata.name;
    let evidence = [format!(
        "condition PodScheduled: {}: {}",
        condition.reason, condition.message
    )];
    let finding = if condition.reason == "SchedulingGated" {
        gated(case, pod)
    } else {
        let message = condition.message.as_str();
        claim(case, name, message)
            .or_else(|| cordoned(case, name, message))
            .or_else(|| tainted(case, name, message))
            .or_else(|| selector(case, pod, message))
            .unwrap_or_else(|| no_room(case, name))
    };
    Some(
        finding
            .shown_by(evidence)
            .since(condition.last_transition_time),
    )
}

fn gated(case: Case<'_>, pod: &Pod) -> Finding {
    let name = &pod.metadata.name;
    let gates: Vec<&str> = pod
        .spec
        .scheduling_gates
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let text = format!(
        "pod {name} waits for its scheduling gates {}",
        gates.join(", ")
    );
    let patch = r#"[{"op":"remove","path":"/spec/schedulingGates"}]"#;
    Finding::stuck("scheduling-gate", text)
        .resolved_by(case.kubectl(&format!("patch pod {name} --type=json -p '{patch}'")))
        .but("the program that owns a gate normally removes it")
}

/// A claim that keeps the pod from every node.
fn claim(case: Case<'_>, name: &str, message: &str) -> Option<Finding> {
    let claim = message
        .split_once("persistentvolumeclaim \"")
        .map(|(_, rest)| rest);
    let claim = claim
        .and_then(|rest| rest.split('"').next())
        .unwrap_or_default();
    if message.contains("bound to non-existent persistentvolume") {
        let text = format!("claim {claim} of pod {name} has lost its volume");
        let is_deleted = case.snapshot.claim(claim).is_some_and(|found| {
            let metadata = &found.metadata;
            metadata.deletion_timestamp.is_some()
        });
        let mut finding = Finding::stuck("claim-lost", text)
            .but("the volume and its data are gone: restore the volume instead if you can");
        if !is_deleted {
            let command = format!("delete pvc {claim} --wait=false");
            finding.resolve.push(case.kubectl(&command));
        }
        finding.resolve.extend(case.delete_pod(name));
        return Some(finding);
    }
    if message.contains("is being deleted") {
        let text = format!("claim {claim} is being deleted while pod {name} needs it");
        let mut finding = Finding::stuck("claim-deleted", text)
            .but("the claim's deletion can't be stopped: the pod gets a new, empty volume");
        finding.resolve.extend(case.delete_pod(name));
        return Some(finding);
    }
    if message.contains("unbound immediate PersistentVolumeClaims") {
        return Some(unbound(case, name));
    }
    if message.contains("PersistentVolume's node affinity")
        || message.contains("volume node affinity")
    {
        // The volume's own node may only be cordoned.
        return cordoned(case, name, "unschedulable").or_else(|| {
            let text =
                format!("the volume of pod {name} is bound to a node that can't take the pod");
            Some(
                Finding::stuck("claim-bound-elsewhere", text)
                    .but("bring the volume's node back, or move the data"),
            )
        });
    }
    None
}

/// A claim without a volume.
fn unbound(case: Case<'_>, name: &str) -> Finding {
    let suffix = format!("-{name}");
    let mut claims = case.snapshot.claims();
    let claim = claims
        .find(|claim| claim.metadata.name.ends_with(&suffix) && claim.status.phase == "Pending");
    let Some(claim) = claim else {
        return Finding::waiting(
            "claim-unbound",
            format!("a claim of pod {name} has no volume yet"),
        );
    };
    let class = claim.spec.storage_class_name.as_deref().unwrap_or("(none)");
    let text = format!(
        "claim {} has no volume (storage class {class})",
        claim.metadata.name
    );
    let warnings = case.snapshot.warnings(&claim.metadata.uid).iter().take(1);
    let warnings = warnings.map(|event| format!("event {}: {}", event.reason, event.message));
    Finding::stuck("claim-unbound", text)
        .shown_by(warnings)
        .since(claim.metadata.creation_timestamp)
        .but(format!(
            "check that the storage class {class} exists and that its provisioner runs"
        ))
}

fn cordoned(case: Case<'_>, name: &str, message: &str) -> Option<Finding> {
    if !message.contains("unschedulable") {
        return None;
    }
    let nodes = names(case, |node| node.spec.unschedulable);
    if nodes.is_empty() {
        return None;
    }
    let text = format!("pod {name} has no node: {} are cordoned", nodes.join(", "));
    Some(
        Finding::stuck("nodes-cordoned", text)
            .resolved_by(format!("kubectl uncordon {}", nodes.join(" ")))
            .but("a node may be cordoned for maintenance"),
    )
}

fn tainted(case: Case<'_>, name: &str, message: &str) -> Option<Finding> {
    let taint = message
        .split_once("untolerated taint")
        .map(|(_, rest)| rest)?;
    let key = taint.trim_start_matches([' ', '(', '{', 's']);
    let key = key
        .split([':', '}', ')', ','])
        .next()
        .unwrap_or_default()
        .trim();
    if key.starts_with(SYSTEM_TAINT) || key.is_empty() {
        let nodes = names(case, |node| node.not_ready().is_some());
        let text = format!("pod {name} has no node: {} are not ready", nodes.join(", "));
        return Some(Finding::stuck("nodes-not-ready", text).but("repair the nodes"));
    }
    let nodes = names(case, |node| {
        node.spec.taints.iter().any(|taint| taint.key == key)
    });
    let text = format!(
        "pod {name} does not tolerate the taint {key} of {}",
        nodes.join(", ")
    );
    Some(
        Finding::stuck("nodes-tainted", text)
            .resolved_by(format!("kubectl taint node {} {key}-", nodes.join(" ")))
            .but("or add a toleration to the template"),
    )
}

fn selector(case: Case<'_>, pod: &Pod, message: &str) -> Option<Finding> {
    if !message.contains("node affinity/selector") || pod.spec.node_selector.is_empty() {
        return None;
    }
    let labels = pod.spec.node_selector.iter();
    let labels = labels.map(|(key, value)| format!("{key}={value}"));
    let labels = labels.collect::<Vec<_>>().join(" ");
    let name = &pod.metadata.name;
    let text = format!("pod {name} has no node: none has the labels {labels}");
    let node = names(case, |node| {
        !node.spec.unschedulable && node.not_ready().is_none()
    });
    let node = node.first().map_or("NODE", String::as_str).to_owned();
    Some(
        Finding::stuck("no-node-with-labels", text)
            .resolved_by(format!("kubectl label node {node} {labels}"))
            .but("choose a node with the hardware that the labels stand for"),
    )
}

/// A pod without room. Scaling down is offered only if it removes neither running pods nor data.
fn no_room(case: Case<'_>, name: &str) -> Finding {
    let set = case.set;
    let own = set.ordinal(name);
    let fitting = own.map_or(0, |ordinal| ordinal - set.ordinals().start);
    let text = format!("pod {name} fits on no node");
    let finding = Finding::stuck("no-room", text);
    let mut pods = case.snapshot.pods_of(set);
    let runs_above =
        pods.any(|pod| set.ordinal(&pod.metadata.name) > own && !pod.spec.node_name.is_empty());
    if fitting < 1 || runs_above || set.deletes_scaled_claims() {
        return finding.but("add a node, or free resources on one");
    }
    let command = format!(
        "scale statefulset {} --replicas={fitting}",
        set.metadata.name
    );
    finding
        .resolved_by(case.kubectl(&command))
        .but("adding a node instead keeps the replicas")
}

fn names(case: Case<'_>, is_wanted: impl Fn(&Node) -> bool) -> Vec<String> {
    let nodes = case.snapshot.nodes().iter().filter(|node| is_wanted(node));
    nodes.map(|node| node.metadata.name.clone()).collect()
}
