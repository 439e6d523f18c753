//! Pods that are ready and unready in turn.
//!
//! A pod shows only its last change. The earlier ones follow from the start of its containers and
//! from the kubelet's events about failed readiness probes.

use jiff::Timestamp;

use super::rollout::undo;
use crate::model::{Pod, Probe};
use crate::why::case::Case;
use crate::why::finding::Finding;

/// Seconds in which a container without a probe becomes ready.
const START_SECONDS: i64 = 2;
/// Seconds since its creation after which a pod that has lost its readiness once counts as flapping.
const PATIENCE_SECONDS: i64 = 120;
/// The same for a pod without events, beyond twice the time that it must be ready for.
const PATIENCE_WITHOUT_EVENTS_SECONDS: i64 = 20;
/// Age up to which a pod's events exist.
const EVENTS_SECONDS: i64 = 3600;

/// The failures of a pod's readiness probes since the start of its containers.
struct Failures {
    count: i64,
    first: Timestamp,
    last: Timestamp,
}

/// The cause if a pod is ready and unready in turn.
pub(super) fn find(case: Case<'_>, pod: &Pod) -> Option<Finding> {
    let since = since(case, pod)?;
    let (name, set) = (&pod.metadata.name, &case.set.spec);
    let stays = match set.min_ready_seconds {
        0 => "it doesn't stay ready".to_owned(),
        seconds => format!("it never stays ready for minReadySeconds ({seconds} s)"),
    };
    let text = format!("pod {name} is ready and unready in turn: {stays}");
    let shown = failures(case, pod).map(|failures| {
        let Failures { count, first, last } = failures;
        format!("readiness probes failed {count} times from {first} to {last}")
    });
    let fix = format!("check kubectl logs {name} and the readiness probe");
    let finding = Finding::stuck("flapping", text)
        .since(Some(since))
        .shown_by(shown);
    Some(undo(case, pod, finding, &fix))
}

/// The beginning of a pod's flapping, which is its creation unless it was available before.
fn since(case: Case<'_>, pod: &Pod) -> Option<Timestamp> {
    let start = pod.last_start()?;
    let created = pod.metadata.creation_timestamp?;
    let ready = pod.condition("Ready")?;
    let changed = ready.last_transition_time?;
    let failures = failures(case, pod);
    let first_loss = failures.as_ref().map_or(changed, |it| it.first);
    let started = start_seconds(pod);
    let has_lost = if pod.is_ready() {
        has_recovered(pod, start, changed, failures.as_ref())
    } else {
        seconds(start, changed) > START_SECONDS
    };
    let min_ready = case.set.spec.min_ready_seconds;
    let was_available = seconds(start, first_loss) > started + min_ready;
    let since = if was_available { first_loss } else { created };
    if loses_often(pod, failures.as_ref()) {
        return Some(since);
    }
    let age = case.seconds_since(created);
    let has_events = case.snapshot.has_events(&pod.metadata.uid);
    let is_overdue = if has_events || age > EVENTS_SECONDS {
        !was_available && age >= PATIENCE_SECONDS
    } else {
        min_ready > 0 && age >= 2 * min_ready + PATIENCE_WITHOUT_EVENTS_SECONDS
    };
    (has_lost && is_overdue).then_some(created)
}

/// Reports whether a ready pod was ready before and lost its readiness in between.
fn has_recovered(
    pod: &Pod,
    start: Timestamp,
    changed: Timestamp,
    failures: Option<&Failures>,
) -> bool {
    let started = start_seconds(pod);
    match (slowest_probe(pod), failures) {
        // Without a probe a pod is ready as soon as its containers run.
        (None, _) => pod.spec.readiness_gates.is_empty() && seconds(start, changed) > started,
        (Some(_), None) => false,
        (Some(_), Some(failures)) => {
            // A slow start fails from the first probe on, so a later first failure follows a
            // success, unless a startup probe delays the others.
            let mut containers = pod.spec.containers.iter();
            let is_delayed = containers.any(|container| container.startup_probe.is_some());
            has_successes_between(pod, failures)
                || !is_delayed && seconds(start, failures.first) > started
        }
    }
}

/// Seconds from the start of the containers in which the probes of a slow start have failed.
fn start_seconds(pod: &Pod) -> i64 {
    slowest_probe(pod).map_or(START_SECONDS, |probe| {
        probe.initial_delay_seconds + 2 * probe.period_seconds + START_SECONDS
    })
}

/// Reports whether the probes show at least two losses of readiness.
fn loses_often(pod: &Pod, failures: Option<&Failures>) -> bool {
    let Some(failures) = failures else {
        return false;
    };
    match slowest_probe(pod) {
        // Without a probe each failure is a loss.
        None => failures.count >= 2,
        Some(probe) => {
            let threshold = probe.failure_threshold.max(1);
            has_successes_between(pod, failures) && failures.count >= 2 * threshold
        }
    }
}

/// Reports whether probes succeeded between the failures: there are fewer failures than tries.
fn has_successes_between(pod: &Pod, failures: &Failures) -> bool {
    slowest_probe(pod).is_some_and(|probe| {
        let tries = seconds(failures.first, failures.last) / probe.period_seconds.max(1) + 1;
        failures.count + 2 <= tries
    })
}

/// The probe with the longest period that the pod's readiness needs.
fn slowest_probe(pod: &Pod) -> Option<&Probe> {
    let containers = pod.spec.containers.iter();
    let probes = containers.flat_map(|it| [it.readiness_probe.as_ref(), it.startup_probe.as_ref()]);
    probes.flatten().max_by_key(|probe| probe.period_seconds)
}

fn failures(case: Case<'_>, pod: &Pod) -> Option<Failures> {
    let start = pod.last_start()?;
    let warnings = case.snapshot.warnings(&pod.metadata.uid).iter();
    let failed = warnings.filter(|event| {
        event.reason == "Unhealthy"
            && event.message.starts_with("Readiness probe")
            && event.last().is_some_and(|last| last >= start)
    });
    let mut found: Option<Failures> = None;
    for event in failed {
        let (Some(first), Some(last)) = (event.first(), event.last()) else {
            continue;
        };
        let first = first.max(start);
        let before = found.get_or_insert(Failures {
            count: 0,
            first,
            last,
        });
        before.count += event.times();
        before.first = before.first.min(first);
        before.last = before.last.max(last);
    }
    found
}

fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_secs()
}
