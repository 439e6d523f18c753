//! Behaviour changes and external status changes of a running pod.

use kube_test_control_plane_store::clock::later;
use serde_json::Value;

use super::behaviour::{Outcome, PodBehaviour};
use super::container::Role;
use super::ending::{end_as, plan_stop};
use super::readiness::change_script;
use super::run::{Ending, Now, PodRun, Stage, Timer};
use super::starting::{plan_crash, plan_readiness};
use super::status::report;
use super::updating::{pull_now, settle_resize, update};
use kube_test_control_plane_server::faults::Delay;

/// Processes a change of the pod. Returns true if the run has changed.
pub(super) fn change(run: &mut PodRun, pod: &Value, behaviour: PodBehaviour, now: Now<'_>) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    if let Some(phase @ ("Failed" | "Succeeded")) = phase
        && matches!(run.stage, Stage::Creating | Stage::Running)
    {
        // Another client ended the pod.
        let (failed, cause) = (phase == "Failed", run.behaviour.cause);
        end_as(run, Ending { failed, cause }, now);
        run.pending_events.clear();
        run.reported = report(run, pod, now.time);
        return false;
    }
    let changed = update(run, pod, now);
    if run.behaviour == behaviour {
        return changed;
    }
    behave(run, behaviour, now);
    settle_resize(run, now);
    true
}

/// Changes the behaviour. Running timers are moved as if the new delays had applied from the
/// start.
fn behave(run: &mut PodRun, behaviour: PodBehaviour, now: Now<'_>) {
    let old = std::mem::replace(&mut run.behaviour, behaviour);
    match run.stage {
        Stage::Creating => {
            let never = Outcome::NeverStarts;
            if run.behaviour.outcome == never {
                run.timers.remove(&Timer::Start);
            } else if old.outcome == never {
                run.set(Timer::Start, run.behaviour.start_delay, now);
            } else if old.start_delay != run.behaviour.start_delay {
                plan_again(run, Timer::Start, run.behaviour.start_delay, "once", 0, now);
            }
        }
        Stage::Running => behave_while_running(run, &old, now),
        Stage::Stopping => {
            let stops = |b: &PodBehaviour| (b.stop, b.pre_stop_delay, b.stop_delay);
            if stops(&old) != stops(&run.behaviour) {
                plan_stop(run, now);
            }
        }
        Stage::Stopped | Stage::Ended => {}
    }
}

fn behave_while_running(run: &mut PodRun, old: &PodBehaviour, now: Now<'_>) {
    let outcome = run.behaviour.outcome;
    for i in 0..run.containers.len() {
        let container = &mut run.containers[i];
        if run.behaviour.crash != old.crash {
            container.crashes = 0;
        }
        if run.behaviour.image_pull_failure != old.image_pull_failure
            && run.timers.contains_key(&Timer::Pull(i))
        {
            pull_now(run, i, now);
        }
        if !run.containers[i].is_running() {
            continue;
        }
        if run.behaviour.crash != old.crash {
            plan_crash(run, i, now);
        }
        let nth = run.containers[i].runs;
        if run.containers[i].role == Role::Init && run.behaviour.init_delay != old.init_delay {
            let delay = run.behaviour.init_delay;
            plan_again(run, Timer::Finish(i), delay, "init", nth, now);
        }
        if run.containers[i].role != Role::Main {
            continue;
        }
        if outcome != old.outcome {
            change_outcome(run, i, now);
        } else if run.behaviour.ready_delay != old.ready_delay {
            let delay = run.behaviour.ready_delay;
            plan_again(run, Timer::Ready(i), delay, "ready", nth, now);
            plan_again(run, Timer::End, delay, "ready", nth, now);
        }
    }
    let script = |b: &PodBehaviour| (b.flap.clone(), b.readiness.clone());
    if script(&run.behaviour) != script(old) {
        change_script(run, now);
    }
}

/// Moves a running timer to the end of the new delay.
fn plan_again(run: &mut PodRun, timer: Timer, delay: Delay, what: &str, nth: u32, now: Now<'_>) {
    let time = run.draw(delay, what, nth, now);
    let since = run.since.get(&timer).copied();
    if let (Some(due), Some(since)) = (run.timers.get_mut(&timer), since) {
        *due = later(since, time);
    }
}

fn change_outcome(run: &mut PodRun, i: usize, now: Now<'_>) {
    run.timers.remove(&Timer::Finish(i));
    match run.behaviour.outcome {
        Outcome::Ready => {
            run.timers.remove(&Timer::End);
            if !run.containers[i].ready {
                plan_readiness(run, i, now);
            }
        }
        Outcome::Fails | Outcome::Succeeds => plan_readiness(run, i, now),
        Outcome::NeverReady => {
            run.timers.remove(&Timer::End);
            run.timers.remove(&Timer::Ready(i));
            run.timers.remove(&Timer::Readiness);
            run.containers[i].ready = false;
        }
        Outcome::NeverStarts => {}
    }
}
