//! Alternating readiness: scripted or flapping.

use std::time::Duration;

use kube_test_control_plane_store::clock::later;

use super::behaviour::ReadinessStep;
use super::container::Role;
use super::run::{Now, PodRun, Timer};
use kube_test_control_plane_server::faults::Delay;

/// Shortest phase of unlimited flapping.
const FLAP_MIN: Duration = Duration::from_millis(100);

/// Marks a container ready for the first time since its start.
pub(super) fn become_ready(run: &mut PodRun, i: usize, now: Now<'_>) {
    if !run.containers[i].is_running() {
        return;
    }
    let (is_ready, lasting) = readiness(run);
    run.containers[i].ready = is_ready;
    if !is_ready {
        run.report_unready(i);
    }
    if !run.timers.contains_key(&Timer::Readiness) {
        plan_step(run, lasting, now);
    }
}

/// Returns the pod's readiness at this step and its duration; `None` means forever.
fn readiness(run: &PodRun) -> (bool, Option<Delay>) {
    let script = &run.behaviour.readiness;
    let step = usize::try_from(run.step).unwrap_or(usize::MAX);
    if let Some(last) = script.last() {
        let is_last = step + 1 >= script.len();
        return match script.get(step).unwrap_or(last) {
            ReadinessStep::Ready(time) => (true, Some(*time).filter(|_| !is_last)),
            ReadinessStep::Unready(time) => (false, Some(*time).filter(|_| !is_last)),
        };
    }
    let Some(flap) = &run.behaviour.flap else {
        return (true, None);
    };
    let at_least = |delay: Delay| delay.at_least(FLAP_MIN);
    if run.step % 2 == 1 {
        return (false, Some(at_least(flap.unready_for)));
    }
    let again = flap.times.is_none_or(|times| run.step / 2 < times);
    (true, again.then(|| at_least(flap.ready_for)))
}

fn plan_step(run: &mut PodRun, lasting: Option<Delay>, now: Now<'_>) {
    if let Some(delay) = lasting {
        let time = run.draw(delay, "readiness", run.step, now);
        run.timers.insert(Timer::Readiness, later(now.at, time));
    }
}

/// Advances to the next step of the script.
pub(super) fn next_step(run: &mut PodRun, now: Now<'_>) {
    run.step = run.step.saturating_add(1);
    let (is_ready, lasting) = readiness(run);
    mark(run, is_ready, false);
    plan_step(run, lasting, now);
}

/// Starts a new script, if the pod has been ready already.
pub(super) fn change_script(run: &mut PodRun, now: Now<'_>) {
    let is_under_way = run.timers.remove(&Timer::Readiness).is_some();
    let is_old = run.step > 0 || is_under_way;
    run.step = 0;
    let main = || run.containers.iter().filter(|c| c.role == Role::Main);
    if is_old || main().any(|container| container.ready) {
        let (is_ready, lasting) = readiness(run);
        mark(run, is_ready, false);
        plan_step(run, lasting, now);
    }
}

/// Marks the running containers ready or unready, until a later change.
pub(super) fn set_ready(run: &mut PodRun, ready: bool, now: Now<'_>) {
    mark(run, ready, true);
    run.timers.remove(&Timer::Readiness);
    if ready && run.behaviour.readiness.is_empty() {
        // Flapping continues from a ready phase.
        run.step += run.step % 2;
        let (_, lasting) = readiness(run);
        plan_step(run, lasting, now);
    }
}

/// Marks the running main containers ready or unready. Containers still in their ready delay
/// change only if `all` is set.
fn mark(run: &mut PodRun, ready: bool, all: bool) {
    for i in 0..run.containers.len() {
        let container = &mut run.containers[i];
        if container.role == Role::Main && container.is_running() {
            let is_new = run.timers.contains_key(&Timer::Ready(i));
            if all || !is_new {
                container.ready = ready;
                run.timers.remove(&Timer::Ready(i));
                if !ready {
                    run.report_unready(i);
                }
            }
        }
    }
}
