//! Pods that end and are replaced, once or in a loop. The controller replaces an ended pod at once,
//! without a back-off.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::refused::names;
use crate::decide::Decision;
use crate::model::{Event, Pod};
use crate::output::{age, counted};
use crate::why::case::Case;
use crate::why::finding::Finding;

/// Time after the last replacement in which a loop counts. The controller's events may be five
/// minutes late: it sends 25 at once, then one in that time.
const RECENT: SignedDuration = SignedDuration::from_mins(10);
/// Replacements that make a loop if failures show it.
const LOOP_MIN: usize = 2;
/// Replacements that make a loop without any other sign, beyond those of new revisions.
const LOOP_MIN_UNEXPLAINED: usize = 3;

/// The end of pods of one name.
struct Ends<'a> {
    name: &'a str,
    /// The ended pod, until the controller deletes it.
    ended: Option<&'a Pod>,
    /// The latest warning about an earlier pod.
    warning: Option<&'a Event>,
    /// Earlier pods with warnings.
    failed: usize,
    /// Replacements by the controller.
    replaced: usize,
    /// The first and the last end.
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

/// The cause if a desired pod ends and is replaced in a loop.
pub(in crate::why) fn looping(case: Case<'_>, decision: &Decision) -> Option<Finding> {
    let pods = case.snapshot.pods_of(case.set);
    let mut candidates: BTreeSet<&str> = pods
        .filter(|pod| pod.is_finished())
        .map(|pod| pod.metadata.name.as_str())
        .collect();
    candidates.extend(case.snapshot.failed_names());
    candidates.extend(decision.writes.iter().filter_map(|write| {
        let is_creation = write.resource == "pods" && write.verb == "create";
        is_creation.then_some(write.name.as_str())
    }));
    candidates.extend(decision.waiting.as_ref().and_then(|it| it.pod()));
    let desired = candidates.into_iter().filter(|name| {
        let ordinal = case.set.ordinal(name);
        ordinal.is_some_and(|ordinal| case.set.ordinals().contains(&ordinal))
    });
    let mut ends = desired.map(|name| Ends::new(case, name));
    ends.find(|ends| is_loop(case, ends))
        .map(|ends| in_a_loop(case, &ends))
}

/// The cause in a pod that has ended and is not yet replaced.
pub(in crate::why) fn once(pod: &Pod) -> Finding {
    let name = &pod.metadata.name;
    let how = how(pod);
    let text = format!("pod {name} has ended ({how}), and the controller replaces it");
    Finding::waiting("pod-ended", text).since(pod.metadata.creation_timestamp)
}

fn is_loop(case: Case<'_>, ends: &Ends<'_>) -> bool {
    let is_recent = |last: Timestamp| case.snapshot.now.duration_since(last) <= RECENT;
    if !ends.last.is_some_and(is_recent) || is_stable(case, ends) {
        return false;
    }
    let is_failing = ends.ended.is_some() || ends.failed > 0;
    is_failing && ends.failed.max(ends.replaced) >= LOOP_MIN
        || ends.replaced >= LOOP_MIN_UNEXPLAINED + revisions_since(case, ends.first)
}

/// Reports whether the current pod is older than a replacement takes: it outlives the loop.
fn is_stable(case: Case<'_>, ends: &Ends<'_>) -> bool {
    let Some(pod) = case.snapshot.pod(ends.name).filter(|it| !it.is_finished()) else {
        return false;
    };
    let (Some(created), Some(first), Some(last)) =
        (pod.metadata.creation_timestamp, ends.first, ends.last)
    else {
        return false;
    };
    let rounds = i64::try_from(ends.failed.max(ends.replaced)).unwrap_or(i64::MAX);
    let each = last.duration_since(first).as_secs() / rounds.max(1);
    case.seconds_since(created) > 2 * each + 30
}

/// Number of revisions that were created since a moment: each explains one replacement.
fn revisions_since(case: Case<'_>, since: Option<Timestamp>) -> usize {
    let revisions = case.snapshot.revisions_of(case.set).into_iter();
    let created = revisions.filter_map(|revision| revision.metadata.creation_timestamp);
    created.filter(|created| Some(*created) >= since).count()
}

fn in_a_loop(case: Case<'_>, ends: &Ends<'_>) -> Finding {
    let name = ends.name;
    let how = match (ends.ended, ends.warning) {
        (Some(pod), _) => Some(how(pod)),
        (None, Some(event)) => Some(format!("{}: {}", event.reason, event.message.trim())),
        (None, None) => None,
    };
    let rounds = counted(ends.failed.max(ends.replaced), "time");
    let span = age(ends.first, case.snapshot.now);
    let reason = how.map_or_else(String::new, |how| format!("; {how}"));
    let text = format!(
        "pod {name} ends and is replaced again and again, without a back-off ({rounds} in the \
         last {span}{reason})"
    );
    let shown = ends.warning.map(Case::event);
    let finding = Finding::stuck("replaced-in-a-loop", text)
        .since(ends.first)
        .shown_by(shown);
    let is_update = case
        .snapshot
        .pod(name)
        .is_none_or(|pod| pod.metadata.revision() == case.set.status.update_revision);
    let fix = fix(ends);
    match case.revision_before().filter(|_| is_update) {
        // The controller replaces the ended pod by one of the earlier revision.
        Some(before) => finding
            .resolved_by(case.undo(before))
            .but(format!("or {fix}")),
        None => finding.but(fix),
    }
}

/// The fix for the reason of the ends.
fn fix(ends: &Ends<'_>) -> &'static str {
    let status = ends.ended.map(|pod| pod.status.reason.as_str());
    let reason = status.or(ends.warning.map(|event| event.reason.as_str()));
    match reason {
        Some("Evicted") => {
            "give the template requests that fit its use, or free memory and disk on the nodes"
        }
        Some("NodeShutdown" | "Terminated" | "Shutdown") => "cordon the node that shuts down",
        Some("Preempting" | "Preempted") => {
            "give the template a higher priority, or add room on the nodes"
        }
        Some("DeadlineExceeded") => "remove activeDeadlineSeconds, which a set's pod can't outlive",
        Some("NodePorts") => "free the host ports on the nodes, or change those of the template",
        _ => "correct the template, so that its pods run on",
    }
}

/// The end of a pod in words.
fn how(pod: &Pod) -> String {
    let status = &pod.status;
    if !status.reason.is_empty() {
        let message = status.message.trim();
        return match message {
            "" => status.reason.clone(),
            message => format!("{}: {message}", status.reason),
        };
    }
    let ended = pod.containers().find_map(|container| {
        let ended = container.state.terminated.as_ref()?;
        Some((container.name.as_str(), ended.exit_code))
    });
    match ended {
        Some((name, code)) => {
            format!("phase {}, container {name} exit code {code}", status.phase)
        }
        None => format!("phase {}", status.phase),
    }
}

impl<'a> Ends<'a> {
    fn new(case: Case<'a>, name: &'a str) -> Self {
        let pod = case.snapshot.pod(name);
        let pod = pod.filter(|it| it.metadata.is_controlled_by(&case.set.metadata.uid));
        let ended = pod.filter(|it| it.is_finished() && it.metadata.deletion_timestamp.is_none());
        let began = case.set.metadata.creation_timestamp;
        let warnings = case.snapshot.earlier_warnings(name).iter();
        let warnings: Vec<&Event> = warnings
            .filter(|event| event.last() >= began && is_end(event))
            .collect();
        let uids: BTreeSet<&str> = warnings
            .iter()
            .map(|event| event.involved_object.uid.as_str())
            .collect();
        let deletions = case.snapshot.notices(&case.set.metadata.uid).iter();
        let deletions: Vec<&Event> = deletions
            .filter(|it| it.reason == "SuccessfulDelete" && names(&it.message, name))
            .collect();
        let replaced: i64 = deletions.iter().map(|event| event.times()).sum();
        let all = || warnings.iter().chain(&deletions);
        Self {
            name,
            ended,
            warning: warnings.first().copied(),
            failed: uids.len(),
            replaced: usize::try_from(replaced).unwrap_or_default(),
            first: all().filter_map(|event| event.first()).min(),
            last: all().filter_map(|event| event.last()).max(),
        }
    }
}

/// Reports whether a warning explains the end of its pod.
fn is_end(event: &Event) -> bool {
    const PASSING: [&str; 6] = [
        "Unhealthy",
        "FailedScheduling",
        "FailedMount",
        "FailedAttachVolume",
        "BackOff",
        "Failed",
    ];
    !PASSING.contains(&event.reason.as_str())
}
