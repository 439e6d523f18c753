//! The timed steps of a pod.

use tokio::time::Instant;

use super::ending::{end, exceed_deadline, stop};
use super::failing::{crash, finish, pull_again, restart};
use super::readiness::{become_ready, next_step};
use super::run::{Now, PodRun, Stage, Timer};
use super::starting::start_next;
use super::updating::carry_out;

/// Runs all due steps except the start.
pub(super) fn run_due_but_start(run: &mut PodRun, now: Now<'_>) {
    let start = run.timers.remove(&Timer::Start);
    run_due(run, None, now);
    if let Some(due) = start.filter(|_| run.stage == Stage::Creating) {
        run.timers.insert(Timer::Start, due);
    }
}

/// Runs all due steps.
pub(super) fn run_due(run: &mut PodRun, pod_ip: Option<String>, now: Now<'_>) {
    let mut pod_ip = pod_ip;
    while let Some(timer) = take_due(run, now.at) {
        if timer == Timer::Start {
            run.pod_ip = pod_ip.take();
            run.stage = Stage::Running;
            start_next(run, now);
            continue;
        }
        fire(run, timer, now);
    }
}

/// Removes and returns the first due timer.
fn take_due(run: &mut PodRun, at: Instant) -> Option<Timer> {
    let due = run.timers.iter().map(|(timer, due)| (*due, *timer));
    let (_, timer) = due.filter(|(due, _)| *due <= at).min()?;
    run.timers.remove(&timer);
    Some(timer)
}

fn fire(run: &mut PodRun, timer: Timer, now: Now<'_>) {
    match timer {
        Timer::Start => {}
        Timer::Pull(i) => pull_again(run, i, now),
        Timer::Finish(i) => finish(run, i, now),
        Timer::Crash(i) => crash(run, i, now),
        Timer::Restart(i) => restart(run, i, now),
        Timer::Ready(i) => become_ready(run, i, now),
        Timer::Readiness => next_step(run, now),
        Timer::End => end(run, now),
        Timer::Deadline => exceed_deadline(run, now),
        Timer::Stop => stop(run, now),
        Timer::Resize => carry_out(run, now),
    }
}
