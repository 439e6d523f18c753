//! Pods without visible trouble that aren't available.

use jiff::Timestamp;
use statefulset_controller::opt_ins::Cause;

use super::{container, flapping, rollout};
use crate::model::Pod;
use crate::why::case::Case;
use crate::why::finding::{Finding, SetState};

/// Seconds that a pod may take to become ready before it counts as stuck without other evidence.
const PATIENCE_SECONDS: i64 = 120;
/// Seconds of `minReadySeconds` from which on they count as a cause.
const LONG_SECONDS: i64 = 3600;

/// The cause in a pod without visible trouble that isn't available.
pub(in crate::why) fn find(case: Case<'_>, pod: &Pod) -> Finding {
    if let Some(finding) = flapping::find(case, pod) {
        return rollout::remedied(case, pod, finding);
    }
    if !pod.is_ready() {
        return starting(case, pod);
    }
    match container::restarting(case, pod) {
        Some(finding) => rollout::remedied(case, pod, finding),
        None => not_available(case, pod),
    }
}

/// A ready pod that must stay ready for `minReadySeconds`.
fn not_available(case: Case<'_>, pod: &Pod) -> Finding {
    let seconds = case.set.spec.min_ready_seconds;
    let name = &pod.metadata.name;
    let text = format!("pod {name} must be ready for minReadySeconds ({seconds} s)");
    let finding = Finding::waiting(Cause::MinReadySeconds.name(), text);
    if seconds < LONG_SECONDS {
        return finding;
    }
    let patch = r#"{"spec":{"minReadySeconds":30}}"#;
    let set = &case.set.metadata.name;
    let command = format!("patch statefulset {set} --type=merge -p '{patch}'");
    Finding {
        state: SetState::Stuck,
        ..finding
    }
    .resolved_by(case.kubectl(&command))
}

/// A pod that isn't ready.
fn starting(case: Case<'_>, pod: &Pod) -> Finding {
    let (name, phase) = (&pod.metadata.name, &pod.status.phase);
    if let Some(finding) = without_volume(case, pod) {
        return rollout::remedied(case, pod, finding);
    }
    let since = since_unready(pod);
    let age = since.map_or(0, |since| case.seconds_since(since));
    if age < PATIENCE_SECONDS {
        return Finding::waiting(
            Cause::PodStarting.name(),
            format!("pod {name} is starting ({phase})"),
        );
    }
    let finding = if phase == "Running" {
        never_ready(case, pod)
    } else {
        let text = format!("pod {name} doesn't start ({phase})");
        let mut finding = Finding::stuck("pod-not-starting", text);
        finding.resolve.extend(case.delete_pod(name));
        finding
    };
    rollout::remedied(case, pod, finding)
}

/// A pod that can't start because an object of one of its volumes doesn't exist.
fn without_volume(case: Case<'_>, pod: &Pod) -> Option<Finding> {
    let warnings = case.snapshot.warnings(&pod.metadata.uid).iter();
    let mut failures = warnings.filter(|event| event.reason == "FailedMount");
    let object = failures.find_map(|event| container::missing_object(&event.message))?;
    (pod.status.phase == "Pending").then(|| container::missing(case, pod, &object))
}

/// A pod that runs for long and isn't ready.
fn never_ready(case: Case<'_>, pod: &Pod) -> Finding {
    let name = &pod.metadata.name;
    let condition = pod.condition("Ready");
    let shown = condition.map(|it| format!("condition Ready: {}: {}", it.reason, it.message));
    let text = format!("pod {name} runs and doesn't become ready");
    let finding = Finding::stuck("never-ready", text).shown_by(shown);
    if case.revision_before().is_some() {
        return rollout::undo(case, pod, finding, "");
    }
    let mut finding = finding.but(format!(
        "check kubectl logs {name} first: the new pod may fail as well"
    ));
    finding.resolve.extend(case.delete_pod(name));
    finding
}

/// The beginning of a pod's unready time.
pub(in crate::why) fn since_unready(pod: &Pod) -> Option<Timestamp> {
    let ready = pod
        .condition("Ready")
        .and_then(|ready| ready.last_transition_time);
    ready.or(pod.metadata.creation_timestamp)
}
