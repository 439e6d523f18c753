//! Exhaustive plans: every write and every event of a workload is hit by every fault in turn.

use std::collections::BTreeSet;

use crate::plan::{
    Action, Cascade, ClaimRetention, Fault, FaultRequests, MaxUnavailable, Plan, SetSpec, Settings,
    UpdateMode, WatchFault,
};
use crate::record::Record;
use crate::run::run;

/// Lengths of pauses in milliseconds: within a retry, within the lease, past the lease, past
/// everything that waits.
const PAUSES: [u64; 4] = [1_000, 8_000, 20_000, 600_000];

/// Time in milliseconds for which events are hidden.
const HIDDEN: u64 = 45_000;

/// A workload whose every write and event is hit.
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// The actions of users.
    pub plan: Plan,
}

/// Returns the workloads.
pub fn workloads() -> Vec<Workload> {
    let claims = SetSpec {
        claims: 1,
        retention: ClaimRetention::DELETE,
        ..SetSpec::default()
    };
    let parallel_claims = SetSpec {
        parallel: true,
        ..claims.clone()
    };
    let parallel = SetSpec {
        parallel: true,
        replicas: 4,
        max_unavailable: Some(MaxUnavailable::Pods(2)),
        ..SetSpec::default()
    };
    let partitioned = SetSpec {
        partition: Some(1),
        ..SetSpec::default()
    };
    let on_delete = SetSpec {
        update: UpdateMode::OnDelete,
        ..SetSpec::default()
    };
    let two_claims = SetSpec {
        claims: 2,
        ..SetSpec::default()
    };
    let of = |name, spec: &SetSpec, steps: Vec<(u64, Action)>| Workload {
        name,
        plan: plan(spec, steps),
    };
    let again = Action::Create(SetSpec::default());
    vec![
        of("create", &claims, vec![]),
        of(
            "scale",
            &claims,
            vec![(120, Action::scale(1)), (240, Action::scale(3))],
        ),
        of(
            "parallel-scale",
            &parallel_claims,
            vec![(120, Action::scale(0)), (240, Action::scale(3))],
        ),
        of(
            "roll",
            &partitioned,
            vec![(120, Action::image("b")), (240, Action::partition(0))],
        ),
        of("parallel-roll", &parallel, vec![(120, Action::image("b"))]),
        of(
            "on-delete",
            &on_delete,
            vec![(120, Action::image("b")), (130, Action::delete_pod(1))],
        ),
        of(
            "retention",
            &two_claims,
            vec![
                (120, Action::retain(ClaimRetention::DELETE)),
                (125, Action::scale(1)),
                (126, Action::retain(ClaimRetention::default())),
            ],
        ),
        of(
            "orphan-adopt",
            &SetSpec::default(),
            vec![(120, Action::delete(Cascade::Orphan)), (150, again)],
        ),
        of(
            "rollback",
            &SetSpec::default(),
            vec![(120, Action::image("b")), (128, Action::image("a"))],
        ),
        of(
            "recreate",
            &claims,
            vec![
                (120, Action::delete(Cascade::Background)),
                (121, Action::Create(claims.clone())),
            ],
        ),
    ]
}

/// Returns a plan of two instances that begins with this set. Times are in seconds.
fn plan(spec: &SetSpec, steps: Vec<(u64, Action)>) -> Plan {
    let settings = Settings {
        instances: 2,
        ..Settings::default()
    };
    let plan = Plan::new(1, settings).at(0, Action::Create(spec.clone()));
    steps.into_iter().fold(plan, |plan, (seconds, action)| {
        plan.at(seconds * 1_000, action)
    })
}

/// Returns the plans of a workload, each with a name: the undisturbed one, and one for each fault at
/// each write and each event.
pub fn plans(workload: &Workload) -> Vec<(String, Plan)> {
    let name = workload.name;
    let reference = run(&workload.plan);
    let writes = reference.requests.iter().filter(|it| it.is_write()).count();
    let mut plans = vec![(format!("{name}: undisturbed"), workload.plan.clone())];
    for nth in 1..=u64::try_from(writes).unwrap_or_default() {
        for (fault, what) in faults_of_writes() {
            let time = match &fault {
                Fault::Isolate { .. } => what.1,
                _ => 0,
            };
            let action = Action::fault(fault, time);
            let plan = workload.plan.clone().at_write(nth, action);
            plans.push((format!("{name}: {} write {nth}", what.0), plan));
        }
    }
    for at in moments(&reference) {
        let freeze = |resource: Option<&str>| {
            let fault = Fault::Watch {
                instance: None,
                resource: resource.map(str::to_owned),
                watch: WatchFault::Freeze,
            };
            Action::fault(fault, HIDDEN)
        };
        for resource in [
            "statefulsets",
            "pods",
            "persistentvolumeclaims",
            "controllerrevisions",
        ] {
            let plan = workload.plan.clone().at(at, freeze(Some(resource)));
            plans.push((format!("{name}: hide {resource} after {at} ms"), plan));
        }
        let fail_over = workload
            .plan
            .clone()
            .at(at, freeze(None))
            .at(at + 1, Action::Crash { instance: None });
        plans.push((
            format!("{name}: freeze and fail over after {at} ms"),
            fail_over,
        ));
    }
    plans
}

/// The faults of single writes, each with its name and the length of its pause.
fn faults_of_writes() -> Vec<(Fault, (&'static str, u64))> {
    let mut faults = vec![
        (Fault::CrashBefore, ("crash before", 0)),
        (Fault::CrashAfter, ("crash after", 0)),
        (
            Fault::LoseAnswer(FaultRequests::default()),
            ("lose the answer to", 0),
        ),
        (Fault::Drop(FaultRequests::default()), ("drop", 0)),
    ];
    for pause in PAUSES {
        let isolate = Fault::Isolate { instance: None };
        faults.push((isolate, ("pause at", pause)));
    }
    faults
}

/// The times, in milliseconds, at which something was stored, up to the end of all faults.
fn moments(record: &Record) -> BTreeSet<u64> {
    let commits = record.commits.iter();
    let of_sets = commits.filter(|commit| {
        let storage = &*commit.entry.object.key.storage;
        let kinds = [
            "statefulsets",
            "pods",
            "persistentvolumeclaims",
            "controllerrevisions",
        ];
        kinds.contains(&storage) && commit.at < record.calm
    });
    of_sets
        .filter_map(|commit| u64::try_from(commit.at.as_millis()).ok())
        .collect()
}
