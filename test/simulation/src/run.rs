//! A run: a plan in, a record out.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::store::LogEntry;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::agent::{Agent, UPGRADE};
use crate::entropy;
use crate::network::Signal;
use crate::plan::{Action, Plan, Trigger};
use crate::record::{Commit, Processed, Record, Recorder};
use crate::world::{BEGIN, World};

/// Time from the last step to the end of all faults.
const LAST_FAULTS: Duration = Duration::from_secs(60);

/// Time without a write after which the instances count as quiet: longer than every delay of the
/// controller's retries, which end at 1,000 seconds.
pub const QUIET: Duration = Duration::from_secs(20 * 60);

/// Limit of the time until the instances are quiet.
pub const QUIET_WITHIN: Duration = Duration::from_secs(4 * 60 * 60);

/// Interval at which a run looks whether the instances are quiet.
const LOOK: Duration = Duration::from_secs(60);

/// Runs a plan in a separate runtime, in paused time.
///
/// # Panics
///
/// Panics if the runtime can't be built, or if a part of the world panics.
pub fn run(plan: &Plan) -> Record {
    entropy::fix();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap_or_else(|error| panic!("cannot build a runtime: {error}"));
    runtime.block_on(Box::pin(run_plan(plan)))
}

async fn run_plan(plan: &Plan) -> Record {
    let began = Instant::now();
    let recorder = Recorder::new();
    let (mut world, mut signals) =
        World::start(plan.seed, plan.settings.clone(), recorder.clone()).await;
    let timed = plan.steps.iter().filter_map(|step| match step.at {
        Trigger::Time(at) => Some((began + Duration::from(at), &step.action)),
        Trigger::Write(_) => None,
    });
    let mut timed: Vec<(Instant, &Action)> = timed.collect();
    timed.sort_by_key(|(at, _)| *at);
    for step in &plan.steps {
        if let (Trigger::Write(nth), Action::Fault { fault, time }) = (step.at, &step.action) {
            world.inject_at_write(nth, fault.clone(), (*time).into());
        }
    }
    for (at, action) in timed {
        pass_until(&mut world, &mut signals, at).await;
        world.act(action).await;
    }
    let calm = Instant::now() + LAST_FAULTS;
    pass_until(&mut world, &mut signals, calm).await;
    world.calm().await;
    let calm = began.elapsed();
    let quiet = become_quiet(&mut world, &mut signals, &recorder).await;
    let length = began.elapsed();
    let fence = world.fence_changes();
    let (plane, commits) = world.finish();
    let mut record = assemble(&plane, commits, &recorder);
    record.fence = fence;
    record.falls = recorder.falls();
    record.postponed = recorder.postponed_count();
    record.suspensions = recorder.suspensions();
    record.calm = calm;
    record.quiet = quiet.map(|at| at.duration_since(began));
    record.length = length;
    let violations = plane.invariants().violations();
    record.plane_violations = violations.iter().map(ToString::to_string).collect();
    record
}

/// Lets time pass, and reacts to signals.
async fn pass_until(
    world: &mut World,
    signals: &mut mpsc::UnboundedReceiver<Signal>,
    until: Instant,
) {
    loop {
        let wake = world.next_wake().map_or(until, |wake| wake.min(until));
        tokio::select! {
            biased;
            signal = signals.recv() => {
                if let Some(signal) = signal {
                    world.receive(signal);
                }
            }
            () = sleep_until(wake) => {
                world.wake().await;
                if wake >= until {
                    return;
                }
            }
        }
    }
}

/// Waits until the instances no longer write. Returns the time of the last write.
async fn become_quiet(
    world: &mut World,
    signals: &mut mpsc::UnboundedReceiver<Signal>,
    recorder: &Recorder,
) -> Option<Instant> {
    let limit = Instant::now() + QUIET_WITHIN;
    let (mut writes, mut since) = (recorder.effective_writes(), Instant::now());
    while since + QUIET > Instant::now() {
        if Instant::now() > limit {
            return None;
        }
        pass_until(world, signals, Instant::now() + LOOK).await;
        let now = recorder.effective_writes();
        if now != writes {
            (writes, since) = (now, Instant::now());
        }
    }
    Some(since)
}

/// Joins the requests of the instances with the API server's log and commits.
fn assemble(plane: &TestControlPlane, commits: Vec<LogEntry>, recorder: &Recorder) -> Record {
    let entries = plane.server().audit().entries();
    let (mut requests, syncs, notes) = recorder.take();
    let mut trace = DefaultHasher::new();
    let began: Timestamp = BEGIN.parse().unwrap_or_default();
    let mut by_revision = BTreeMap::new();
    let requests_served = entries.len();
    for entry in &entries {
        let at = entry.received.duration_since(began).unsigned_abs();
        let agent: Option<Agent> = entry.user_agent.parse().ok();
        let request = agent.map(|agent| agent.request);
        (
            at,
            &entry.user_agent,
            &entry.path,
            entry.code,
            entry.revision_after,
        )
            .hash(&mut trace);
        if let Some(request) = request.and_then(|request| requests.get_mut(request)) {
            request.processed = Some(Processed {
                at,
                before: entry.revision_before,
                after: entry.revision_after,
                code: entry.code,
            });
        }
        for revision in entry.revision_before + 1..=entry.revision_after {
            // Of overlapping requests the shortest names the sender.
            let span = entry.revision_after - entry.revision_before;
            let found: &mut (u64, Duration, Option<usize>, Arc<str>) = by_revision
                .entry(revision)
                .or_insert_with(|| (u64::MAX, at, None, Arc::from("")));
            if span < found.0 {
                *found = (span, at, request, Arc::from(entry.user_agent.as_str()));
            }
        }
    }
    for (at, revisions) in recorder.upgrades() {
        for revision in revisions {
            by_revision.insert(revision, (0, at, None, Arc::from(UPGRADE)));
        }
    }
    let commits = commits.into_iter().map(|entry| {
        let found = by_revision.get(&entry.revision);
        let (_, at, request, agent) =
            found
                .cloned()
                .unwrap_or((0, Duration::ZERO, None, Arc::from("")));
        Commit {
            at,
            entry,
            request,
            agent,
        }
    });
    let commits = commits.collect();
    Record {
        requests,
        syncs,
        commits,
        notes,
        requests_served,
        trace: trace.finish(),
        ..Record::default()
    }
}
