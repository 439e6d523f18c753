//! The label of pods whose removal is requested.

use super::super::progress::update_of;
use super::choices::Choices;
use super::gate::requested;
use super::{Case, Verdict, Write, limit, restart};
use crate::plan::opt_ins::REQUESTED;
use crate::views::{Pod, Set};

/// Reports whether a field of a pod, as a JSON pointer to a label, is the request to remove it.
pub(in super::super) fn is_request(pointer: &str) -> bool {
    pointer.strip_prefix("/metadata/labels/") == Some(REQUESTED)
}

/// the removal of a pod is requested once, while its gate holds and the pod is to go; the request is
/// withdrawn when the pod stays.
pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, choices: &Choices, verdict: &mut Verdict) {
    if !write.changes("pods") || !write.request.subresource.is_empty() {
        return;
    }
    let version = write.text("/metadata/resourceVersion");
    let version = version.and_then(|version| version.parse().ok());
    let base = version.and_then(|version| case.history.pods.at(&write.key(), version));
    let (Some(base), Some(ordinal)) = (base, write.ordinal()) else {
        return;
    };
    let written = Pod::read(&write.request.json());
    let set = write.view.set;
    let is_kept = set.range().contains(&ordinal) && !is_replaced(case, write, choices, base, set);
    let versions = (
        write.request.namespace.as_str(),
        write.seen.claims,
        write.newest,
    );
    let waits = restart::waits(case, write.sync.process, set, ordinal, versions);
    let why = match (requested(base), requested(&written)) {
        (before, after) if before == after => None,
        (None, Some(at)) => {
            let holds = choices.gate.as_ref().is_some_and(|it| it.holds(base));
            let clock = write.early.as_second()..=write.now.as_second();
            if !holds {
                Some("no gate holds")
            } else if is_kept && !waits.in_some {
                Some("the pod stays")
            } else if !clock.contains(&at.as_second()) {
                Some("it has another time")
            } else {
                None
            }
        }
        (Some(_), None) if !is_kept || waits.in_all => Some("the pod is to go"),
        (Some(_), None) => None,
        _ => Some("it was requested before"),
    };
    if let Some(why) = why {
        let message = format!("{}: request of its removal, {why}", write.named());
        verdict.broken("X-5", write.request.sent, message);
    }
}

/// Reports whether the update replaces a desired pod.
fn is_replaced(
    case: &Case<'_>,
    write: &Write<'_>,
    choices: &Choices,
    base: &Pod,
    set: &Set,
) -> bool {
    let update = update_of(case, write).map(|it| it.name.as_str());
    let members = write.view.members.values().copied();
    let partition = limit::limit(choices, set, members, update).partition;
    let index = write
        .ordinal()
        .unwrap_or_default()
        .saturating_sub(set.start);
    !set.is_on_delete() && index >= partition && Some(base.revision.as_str()) != update
}
