//! Derived cases in which a foreign pod has the name of a pod that upstream deletes.
//!
//! The cache still shows the set's own pod. Upstream deletes by name, and so deletes the
//! foreign pod: its recorded outcome stays the same. The product sends the uid, gets a conflict and
//! deletes nothing, according to the rule `deletions-name-objects`.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use statefulset_client::fake::Verb;
use statefulset_client::resource::PODS;

use super::cluster;
use super::verdict::judge;
use crate::sync_case::Case;

/// Differences from the altered expectation if every pod that upstream deletes without any
/// other request about it has been replaced with a foreign pod; empty without such a pod.
///
/// # Errors
///
/// The case's objects can't be decoded.
pub fn differences(case: &mut Case) -> anyhow::Result<Vec<String>> {
    case.live_pods = successors(case)?;
    let differences = if case.live_pods.is_empty() {
        Ok(Vec::new())
    } else {
        differences_beside(case)
    };
    case.live_pods = Vec::new();
    differences
}

fn differences_beside(case: &Case) -> anyhow::Result<Vec<String>> {
    let verdict = judge(case, case.expected()?, &cluster::sync(case)?.0);
    let mut differences = verdict.differences;
    // Another rule may end the sync before the deletion.
    if verdict.deviations.is_empty() {
        differences.push("no rule keeps the pod".to_owned());
    }
    let with_context = |line: String| format!("with another owner's pod of the name: {line}");
    Ok(differences.into_iter().map(with_context).collect())
}

/// The foreign pods. Empty if deletions fail anyway, because the order of the failures is
/// undefined.
///
/// # Errors
///
/// An object of the case is not a JSON object.
pub fn successors(case: &Case) -> anyhow::Result<Vec<Box<RawValue>>> {
    let mut faults = case.faults.iter();
    if faults.any(|fault| fault.verb == Verb::Delete && fault.resource == PODS.plural) {
        return Ok(Vec::new());
    }
    let namespace = case.key.split('/').next().unwrap_or("");
    let mut successors = Vec::new();
    for object in &case.objects {
        let mut pod: Value = serde_json::from_str(object.get())?;
        let metadata = &pod["metadata"];
        let is_deleted = pod["kind"] == PODS.kind
            && metadata["namespace"] == namespace
            && is_only_deleted(case, metadata["name"].as_str().unwrap_or(""));
        if is_deleted {
            let metadata = &mut pod["metadata"];
            metadata["uid"] = json!("successor");
            metadata["labels"] = json!({"app": "other"});
            metadata["ownerReferences"] = json!([{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "other",
                "uid": "other",
                "controller": true,
            }]);
            successors.push(serde_json::value::to_raw_value(&pod)?);
        }
    }
    Ok(successors)
}

/// Returns true if upstream deletes the pod and makes no other request about it.
fn is_only_deleted(case: &Case, name: &str) -> bool {
    let actions = case.expect.actions.iter();
    let mut verbs = actions
        .filter(|action| action.resource == PODS.plural && action.name == name)
        .map(|action| action.verb.as_str())
        .peekable();
    verbs.peek().is_some() && verbs.all(|verb| verb == "delete")
}
