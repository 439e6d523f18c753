//! Names that another pod has, or that are too long.

use crate::decide::{Decision, Write};
use crate::model::Pod;
use crate::why::case::Case;
use crate::why::causes::deletion;
use crate::why::finding::{Finding, SetState};

/// Longest label value and host name.
const LENGTH_MAX: usize = 63;
/// Longest name of a set whose pods have valid labels under every hash of the template.
const SET_LENGTH_MAX: usize = 52;
/// Seconds in which the garbage collector deletes the pods of a deleted set.
const COLLECTION_SECONDS: i64 = 120;

/// The pods that the controller is about to create.
fn created(decision: &Decision) -> impl Iterator<Item = &Write> {
    let writes = decision.writes.iter();
    writes.filter(|write| write.verb == "create" && write.resource == "pods")
}

/// The cause if another pod has the name of a pod to create.
pub(in crate::why) fn taken(case: Case<'_>, decision: &Decision) -> Option<Finding> {
    created(decision).find_map(|write| {
        let pod = case.snapshot.pod(&write.name)?;
        let is_own = pod.metadata.is_controlled_by(&case.set.metadata.uid);
        (!is_own).then(|| held(case, pod))
    })
}

/// The cause in the pod that has the name.
fn held(case: Case<'_>, pod: &Pod) -> Finding {
    let (name, uid) = (&pod.metadata.name, &pod.metadata.uid);
    let owner = pod.metadata.controller();
    let is_of_set =
        |kind: &str, name: &str| kind == "StatefulSet" && name == case.set.metadata.name;
    let earlier = owner.filter(|owner| is_of_set(&owner.kind, &owner.name));
    let whose = match (owner, earlier) {
        (_, Some(set)) => format!("of an earlier StatefulSet {} (uid {})", set.name, set.uid),
        (Some(owner), None) => format!("of the {} {}", owner.kind, owner.name),
        (None, None) => "without a controller".to_owned(),
    };
    if pod.metadata.deletion_timestamp.is_some() {
        let deleted = pod.metadata.deleted_at();
        let since = deleted.map_or_else(String::new, |at| format!(" since {at}"));
        let finding = deletion::pod(case, pod);
        let text = format!(
            "the name {name} is held by a pod {whose}, which is terminating{since}: {}",
            finding.text
        );
        let node = pod.spec.node_name.as_str();
        let place = if node.is_empty() { "no node" } else { node };
        let shown = format!("pod {name} has uid {uid} and is on {place}");
        return Finding {
            cause: "name-terminating",
            text,
            since: deleted,
            ..finding
        }
        .shown_by([shown]);
    }
    let text = format!("the name {name} is taken by a pod that isn't the set's");
    let controller = owner.map_or_else(
        || "no controller, and labels that the selector doesn't match".to_owned(),
        |owner| {
            format!(
                "the controller {} {} (uid {})",
                owner.kind, owner.name, owner.uid
            )
        },
    );
    let mut finding = Finding::stuck("name-taken", text)
        .shown_by([format!("pod {name} (uid {uid}) has {controller}")])
        .since(pod.metadata.creation_timestamp);
    let is_collected = earlier.is_some() && {
        let created = case.set.metadata.creation_timestamp;
        created.is_some_and(|created| case.seconds_since(created) < COLLECTION_SECONDS)
    };
    if is_collected {
        return Finding {
            state: SetState::Waiting,
            since: case.set.metadata.creation_timestamp,
            ..finding
        }
        .but("the garbage collector deletes the pods of a deleted set");
    }
    finding.resolve.extend(case.delete_pod(name));
    finding.but("check the pod first: another user or controller created it")
}

/// The cause if the names of the set's pods and revisions are too long for labels.
pub(in crate::why) fn too_long(case: Case<'_>, decision: &Decision) -> Option<Finding> {
    let pod = created(decision).next()?;
    let revision = &case.set.status.update_revision;
    let (labels, size) = if revision.len() > LENGTH_MAX {
        (
            format!("the label controller-revision-hash ({revision})"),
            revision.len(),
        )
    } else if pod.name.len() > LENGTH_MAX {
        (
            format!("the host name and the label {}", pod.name),
            pod.name.len(),
        )
    } else {
        return None;
    };
    let set = &case.set.metadata.name;
    let text = format!(
        "the name of the set has {} characters, so {labels} of its pods would have {size}, more \
         than {LENGTH_MAX}",
        set.len()
    );
    let warnings = case.snapshot.warnings(&case.set.metadata.uid).iter();
    let failed = warnings.filter(|event| event.reason == "FailedCreate");
    let failed: Vec<_> = failed.collect();
    let most = LENGTH_MAX.to_string();
    let shown = failed.iter().find(|event| event.message.contains(&most));
    if shown.is_none() && !failed.is_empty() {
        return None;
    }
    let shown = shown.map(|event| Case::event(event));
    Some(
        Finding::stuck("name-too-long", text)
            .shown_by(shown)
            .since(case.set.metadata.creation_timestamp)
            .but(format!(
                "recreate the set with a name of at most {SET_LENGTH_MAX} characters; the names of \
                 its claims change as well"
            )),
    )
}
