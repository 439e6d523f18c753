//! Pods without a volume for a claim template: the controller can't add one to a pod.

use crate::decide::Decision;
use crate::model::Pod;
use crate::why::case::Case;
use crate::why::finding::Finding;

/// The cause if the controller wants to add a volume to an existing pod.
pub(in crate::why) fn mismatch(case: Case<'_>, decision: &Decision) -> Option<Finding> {
    let updates = decision.writes.iter();
    let mut updates = updates.filter(|it| it.verb == "update" && it.resource == "pods");
    let (pod, claim) = updates.find_map(|write| {
        let pod = case.snapshot.pod(&write.name)?;
        Some((pod, missing(case, pod)?))
    })?;
    let name = &pod.metadata.name;
    let others = case.snapshot.pods_of(case.set);
    let others = others.filter(|it| it.metadata.name != *name);
    let others: Vec<&str> = others
        .filter(|other| missing(case, other).is_some())
        .map(|other| other.metadata.name.as_str())
        .collect();
    let text = format!(
        "pod {name} has no volume for the claim {claim}: a claim template was added after its \
         creation, and the volumes of a pod can't be changed (kubernetes/kubernetes#141876)"
    );
    let warnings = case.snapshot.warnings(&case.set.metadata.uid).iter();
    let mut failures =
        warnings.filter(|it| it.reason == "FailedUpdate" && it.message.contains(name));
    let shown = failures.next().map(Case::event);
    let mut finding = Finding::stuck("storage-mismatch", text).shown_by(shown);
    finding.resolve.extend(case.delete_pod(name));
    if others.is_empty() {
        return Some(finding);
    }
    Some(finding.but(format!("{} need the same, one by one", others.join(", "))))
}

/// The claim that a pod has no volume for.
fn missing(case: Case<'_>, pod: &Pod) -> Option<String> {
    let name = &pod.metadata.name;
    case.set.ordinal(name)?;
    let templates = case.set.spec.volume_claim_templates.iter();
    let mut claims = templates.map(|template| format!("{}-{name}", template.metadata.name));
    claims.find(|claim| !pod.mounts(claim))
}
