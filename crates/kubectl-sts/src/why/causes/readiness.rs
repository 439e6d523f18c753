//! Pods without visible trouble that aren't available.

use jiff::Timestamp;

use super::{container, rollout};
use crate::model::Pod;
use crate::why::case::Case;
use crate::why::finding::{Finding, State};

/// Seconds that a pod may take to become ready before it counts as stuck without other evidence.
const PATIENCE_SECONDS: i64 = 120;

/// The cause in a pod without visible trouble that isn't available.
pub(in crate::why) fn find(case: Case<'_>, pod: &Pod) -> Finding {
    if pod.is_ready() {
        not_available(case, pod)
    } else {
        starting(case, pod)
    }
}

/// A ready pod that must stay ready for `minReadySeconds`.
fn not_available(case: Case<'_>, pod: &Pod) -> Finding {
    let seconds = case.set.spec.min_ready_seconds;
    let name = &pod.metadata.name;
    let text = format!("pod {name} must be ready for minReadySeconds ({seconds} s)");
    let finding = Finding::waiting("min-ready-seconds", text);
    if seconds < 3600 {
        return finding;
    }
    let patch = r#"{"spec":{"minReadySeconds":30}}"#;
    let set = &case.set.metadata.name;
    let command = format!("patch statefulset {set} --type=merge -p '{patch}'");
    Finding {
        state: State::Stuck,
        ..finding
    }
    .resolved_by(case.kubectl(&command))
}

/// A pod that isn't ready.
fn starting(case: Case<'_>, pod: &Pod) -> Finding {
    let (name, phase) = (&pod.metadata.name, &pod.status.phase);
    let since = since_unready(pod);
    let age = since.map_or(0, |since| case.snapshot.now.duration_since(since).as_secs());
    if age < PATIENCE_SECONDS {
        return Finding::waiting("pod-starting", format!("pod {name} is starting ({phase})"));
    }
    let finding = if phase == "Running" {
        container::never_ready(case, pod)
    } else {
        let text = format!("pod {name} doesn't start ({phase})");
        Finding::stuck("pod-not-starting", text).resolved_by(case.delete_pod(name))
    };
    rollout::remedied(case, pod, finding)
}

/// The beginning of a pod's unready time.
pub(in crate::why) fn since_unready(pod: &Pod) -> Option<Timestamp> {
    let ready = pod
        .condition("Ready")
        .and_then(|ready| ready.last_transition_time);
    ready.or(pod.metadata.creation_timestamp)
}
