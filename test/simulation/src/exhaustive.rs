//! Exhaustive plans: every write and every event of a workload is hit by every fault in turn.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::OptIns;
use crate::plan::opt_ins::{GROWING, HOLDS, WITH_POD, annotation, choose, hold, size};
use crate::plan::{
    Action, Cascade, ClaimRetention, Fault, FaultRequests, MaxUnavailable, Plan, SetSpec, Settings,
    UpdateMode, WatchFault,
};
use crate::record::Record;
use crate::run::run;

/// Lengths of pauses in milliseconds: within a retry, within the lease, past the lease, past
/// everything that waits.
const PAUSES: [u64; 4] = [1_000, 8_000, 20_000, 600_000];

/// Lengths of stops in milliseconds after which another instance leads.
const STOPS: [u64; 2] = [20_000, 600_000];

/// Time in milliseconds for which events are hidden.
const HIDDEN: u64 = 45_000;

/// Time in milliseconds after which an event has arrived: longer than the lag of the watches.
const ARRIVED: u64 = 50;

/// Resources that the instances watch.
const RESOURCES: [&str; 4] = [
    "statefulsets",
    "pods",
    "persistentvolumeclaims",
    "controllerrevisions",
];

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
    let mut workloads = vec![
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
    ];
    workloads.extend(skewed());
    workloads.extend(opted_in());
    workloads
}

/// Workloads whose instances differ: in their clocks, and in the versions that they emulate.
fn skewed() -> [Workload; 2] {
    let available_late = SetSpec {
        min_ready_seconds: 10,
        ..SetSpec::default()
    };
    let steps = vec![(120, Action::image("b")), (240, Action::scale(2))];
    let mut clocks = plan(&available_late, steps);
    for (instance, millis) in [(0, 120_000), (1, -120_000)] {
        let skew = Fault::Skew { instance, millis };
        clocks = clocks.at(0, Action::fault(skew, 400_000));
    }
    let steps = vec![(120, Action::image("b")), (240, Action::image("a"))];
    let mut versions = plan(&SetSpec::default(), steps);
    versions.settings.versions = vec![34, 36];
    [
        Workload {
            name: "clock-skew",
            plan: clocks,
        },
        Workload {
            name: "version-skew",
            plan: versions,
        },
    ]
}

/// Workloads of sets that opt in: updates of running pods, growth of claims, repairs in both ways, and a
/// scale-down behind a gate.
fn opted_in() -> Vec<Workload> {
    let with = |name: &str, value: &str| BTreeMap::from([(annotation(name), value.to_owned())]);
    let of = |name, spec: &SetSpec, steps: Vec<(u64, Action)>| {
        let mut plan = plan(spec, steps);
        plan.settings.opt_ins = Some(OptIns::default());
        Workload { name, plan }
    };
    let repaired = |name, method| {
        let spec = SetSpec {
            annotations: with("repair", method),
            ..SetSpec::default()
        };
        let steps = vec![(120, Action::image("dead-pull")), (240, Action::image("b"))];
        of(name, &spec, steps)
    };
    let gated = SetSpec {
        claims: 1,
        retention: ClaimRetention::DELETE,
        annotations: with("removal-gate", "example.com/drained=no"),
        ..SetSpec::default()
    };
    let steps = vec![
        (60, hold("web-1", "labels", Some(HOLDS))),
        (60, hold("web-2", "annotations", Some(HOLDS))),
        (120, Action::scale(1)),
        (180, hold("web-2", "annotations", None)),
        (200, hold("web-1", "labels", None)),
        (300, Action::scale(3)),
    ];
    let sized = SetSpec {
        annotations: with("in-place", "resources"),
        ..SetSpec::default()
    };
    let sizes = vec![
        (0, size("web", "100m", "a")),
        (120, size("web", "200m", "b")),
        (124, size("web", "1", "c")),
        (240, size("web", "1", "d")),
    ];
    let grown = SetSpec {
        claims: 1,
        class: Some(GROWING.to_owned()),
        ..SetSpec::default()
    };
    let growth = vec![
        (120, choose("web", "claim-size", Some("data0=2Gi"))),
        (150, Action::scale(4)),
        (240, choose("web", "claim-size", Some("data0=3Gi"))),
        (360, choose("web", "claim-size", None)),
    ];
    let restarted = SetSpec {
        claims: 1,
        class: Some(WITH_POD.to_owned()),
        annotations: with("claim-resize", "with-pod"),
        ..SetSpec::default()
    };
    let growth_with_pods = vec![
        (120, choose("web", "claim-size", Some("data0=2Gi"))),
        (240, choose("web", "claim-size", Some("data0=3Gi"))),
    ];
    vec![
        of("in-place", &sized, sizes),
        of("grow", &grown, growth),
        of("grow-with-pods", &restarted, growth_with_pods),
        repaired("repair-by-deletion", "delete"),
        repaired("repair-by-eviction", "evict"),
        of("gated-scale", &gated, steps),
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
        for (what, fault, time) in faults_of_writes() {
            let plan = workload
                .plan
                .clone()
                .at_write(nth, Action::fault(fault, time));
            plans.push((format!("{name}: {what} write {nth}"), plan));
        }
    }
    for (resource, at, time) in superseded(&reference) {
        let plan = workload.plan.clone().at(at, freeze(Some(resource), time));
        let what = format!("{name}: hide {resource} after {at} ms until the object's next event");
        plans.push((what, plan));
    }
    for at in moments(&reference) {
        for resource in RESOURCES {
            let plan = workload.plan.clone().at(at, freeze(Some(resource), HIDDEN));
            plans.push((format!("{name}: hide {resource} after {at} ms"), plan));
        }
        let fail_over = workload
            .plan
            .clone()
            .at(at, freeze(None, HIDDEN))
            .at(at + 1, Action::Crash { instance: None });
        plans.push((
            format!("{name}: freeze and fail over after {at} ms"),
            fail_over,
        ));
    }
    plans
}

/// Hides the events of a resource from all instances, or of all resources.
fn freeze(resource: Option<&str>, millis: u64) -> Action {
    let fault = Fault::Watch {
        instance: None,
        resource: resource.map(str::to_owned),
        watch: WatchFault::Freeze,
    };
    Action::fault(fault, millis)
}

/// The faults of single writes, each with its name and its length in milliseconds.
fn faults_of_writes() -> Vec<(String, Fault, u64)> {
    let all = FaultRequests::default;
    let mut faults = vec![
        ("crash before".to_owned(), Fault::CrashBefore, 0),
        ("crash after".to_owned(), Fault::CrashAfter, 0),
        (
            "lose the response to".to_owned(),
            Fault::LoseResponse(all()),
            0,
        ),
        ("drop".to_owned(), Fault::Drop(all()), 0),
        (
            "leave unprocessed".to_owned(),
            Fault::LeaveUnprocessed(all()),
            0,
        ),
    ];
    for pause in PAUSES {
        let isolate = Fault::Isolate { instance: None };
        faults.push((format!("pause {} s at", pause / 1_000), isolate, pause));
    }
    for stop in STOPS {
        let suspend = Fault::Suspend { instance: None };
        faults.push((format!("stop {} s after", stop / 1_000), suspend, stop));
    }
    faults
}

/// The commits of the sets' objects until the end of all faults: resource, name, and time in
/// milliseconds.
fn changes(record: &Record) -> Vec<(&'static str, &str, u64)> {
    let commits = record.commits.iter().filter(|it| it.at < record.calm);
    let of_sets = commits.filter_map(|commit| {
        let key = &commit.entry.object.key;
        let resource = RESOURCES.into_iter().find(|it| *it == &*key.storage)?;
        let at = u64::try_from(commit.at.as_millis()).ok()?;
        Some((resource, &*key.name, at))
    });
    of_sets.collect()
}

/// The times at which something was stored.
fn moments(record: &Record) -> BTreeSet<u64> {
    changes(record).into_iter().map(|(_, _, at)| at).collect()
}

/// Events superseded by a later event of the same object: resource, time, and time until the later
/// one has arrived.
fn superseded(record: &Record) -> BTreeSet<(&'static str, u64, u64)> {
    let mut latest: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut superseded = BTreeSet::new();
    for (resource, name, at) in changes(record) {
        let earlier = latest.insert((resource, name), at);
        if let Some(earlier) = earlier.filter(|earlier| *earlier < at) {
            superseded.insert((resource, earlier, at - earlier + ARRIVED));
        }
    }
    superseded
}
