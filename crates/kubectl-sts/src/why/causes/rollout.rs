//! Rollouts that a strategy, a partition or a pod of an older revision holds, and the way back.

use statefulset_controller::opt_ins::Cause;

use crate::model::Pod;
use crate::why::case::Case;
use crate::why::finding::Finding;

/// Names of the desired pods without the update revision.
fn outdated(case: Case<'_>) -> Vec<String> {
    let set = case.set;
    let update = &set.status.update_revision;
    let pods = case.snapshot.pods_of(set).filter(|pod| {
        let ordinal = set.ordinal(&pod.metadata.name);
        pod.metadata.revision() != update
            && pod.metadata.deletion_timestamp.is_none()
            && ordinal.is_some_and(|ordinal| set.ordinals().contains(&ordinal))
    });
    let mut names: Vec<(Option<i64>, String)> = pods
        .map(|pod| (set.ordinal(&pod.metadata.name), pod.metadata.name.clone()))
        .collect();
    names.sort();
    names.into_iter().map(|(_, name)| name).collect()
}

/// The cause if the partition keeps pods at the old revision.
pub(in crate::why) fn held_by_partition(case: Case<'_>) -> Option<Finding> {
    let set = case.set;
    let partition = i64::from(set.partition());
    let is_rolling = set.status.update_revision != set.status.current_revision;
    let outdated = outdated(case);
    if set.is_on_delete() || partition == 0 || !is_rolling || outdated.is_empty() {
        return None;
    }
    let replicas = i64::from(set.replicas());
    let pods = outdated.join(", ");
    let (cause, text) = if partition >= replicas {
        let text = format!(
            "partition {partition} is not below replicas {replicas}: no pod gets revision {}",
            set.status.update_revision
        );
        ("partition-beyond-replicas", text)
    } else {
        let text = format!("partition {partition} keeps the old revision in {pods}");
        (Cause::Partition.name(), text)
    };
    let finding = Finding::stuck(cause, text)
        .shown_by([format!(
            "current revision {}, update revision {}",
            set.status.current_revision, set.status.update_revision
        )])
        .resolved_by(set_partition(case, 0))
        .but("the partition may be intended, for example for a canary");
    Some(finding)
}

/// The command that changes the partition.
fn set_partition(case: Case<'_>, partition: i64) -> String {
    let patch = format!(
        r#"{{"spec":{{"updateStrategy":{{"rollingUpdate":{{"partition":{partition}}}}}}}}}"#
    );
    let name = &case.set.metadata.name;
    case.kubectl(&format!(
        "patch statefulset {name} --type=merge -p '{patch}'"
    ))
}

/// The cause if the user must delete outdated pods.
pub(in crate::why) fn on_delete(case: Case<'_>) -> Finding {
    let pods = outdated(case);
    let names = pods.join(" ");
    let text = format!("the strategy OnDelete leaves the deletion of {names} to the user");
    let mut finding = Finding::stuck(Cause::OnDelete.name(), text);
    finding.resolve.extend(case.delete_pods(&pods));
    finding.but("this deletes all of them at once: delete them one by one to stay available")
}

/// Returns to the revision before, or names the fix. An ordered set then still waits for the broken
/// pod, which must be deleted.
pub(super) fn undo(case: Case<'_>, pod: &Pod, finding: Finding, fix: &str) -> Finding {
    let name = &pod.metadata.name;
    let delete = case.delete_pod(name);
    let Some(before) = case.revision_before() else {
        let delete = delete.unwrap_or_default();
        return finding.but(format!(
            "the set has no earlier revision: {fix}, then run {delete}"
        ));
    };
    let mut finding = finding.resolved_by(case.undo(before));
    finding.resolve.extend(delete);
    finding
}

/// Completes the cause in a pod with the needs of the revision.
pub(in crate::why) fn remedied(case: Case<'_>, pod: &Pod, broken: Finding) -> Finding {
    let (set, name) = (case.set, &pod.metadata.name);
    let is_outdated = pod.metadata.revision() != set.status.update_revision;
    if !is_outdated || set.is_on_delete() {
        return broken;
    }
    let index = set
        .ordinal(name)
        .map(|ordinal| ordinal - set.ordinals().start);
    let index = index.unwrap_or_default();
    let old = pod.metadata.revision();
    let mut finding = if index < i64::from(set.partition()) {
        let text = format!(
            "pod {name} is broken in revision {old}, which partition {} keeps: {}",
            set.partition(),
            broken.text
        );
        Finding::stuck(Cause::PartitionKeepsBrokenPod.name(), text)
            .resolved_by(set_partition(case, index))
    } else {
        let waits = if set.is_ordered() {
            "OrderedReady waits for it before it updates any pod"
        } else {
            "the update waits for it"
        };
        let text = format!(
            "pod {name} is broken in the older revision {old} ({}); {waits} \
             (kubernetes/kubernetes#67250)",
            broken.text
        );
        Finding::stuck(Cause::OldRevisionBlocks.name(), text)
    };
    finding.evidence = broken.evidence;
    finding.resolve.extend(case.delete_pod(name));
    finding.since(broken.since)
}
