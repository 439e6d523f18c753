//! Exhaustive plans: every write and every event of a workload is hit by every fault in turn.

use std::collections::BTreeSet;

use crate::plan::{
    Action, Cascade, ClaimRetention, Fault, FaultRequests, MaxUnavailable, Millis, Plan, Retain,
    SetSpec, Settings, UpdateMode, WatchFault,
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
    /// What users do.
    pub plan: Plan,
}

/// Returns the workloads.
pub fn workloads() -> Vec<Workload> {
    let seconds = 1_000;
    let web = "web".to_owned();

    let claims = SetSpec {
        claims: 1,
        retention: ClaimRetention {
            when_deleted: Retain::Delete,
            when_scaled: Retain::Delete,
        },
        ..SetSpec::default()
    };
    let parallel = SetSpec {
        parallel: true,
        replicas: 4,
        max_unavailable: Some(MaxUnavailable::Pods(2)),
        ..SetSpec::default()
    };
    let scale = |replicas| Action::Scale {
        set: web.clone(),
        replicas,
    };
    let image = |image: &str| Action::Image {
        set: web.clone(),
        image: image.to_owned(),
    };
    let begin = |spec: SetSpec| {
        let settings = Settings {
            instances: 2,
            ..Settings::default()
        };
        Plan::new(1, settings).at(0, Action::Create(spec))
    };
    let later = 120 * seconds;
    vec![
        Workload {
            name: "create",
            plan: begin(claims.clone()),
        },
        Workload {
            name: "scale",
            plan: begin(claims.clone())
                .at(later, scale(1))
                .at(2 * later, scale(3)),
        },
        Workload {
            name: "parallel-scale",
            plan: begin(SetSpec {
                parallel: true,
                ..claims.clone()
            })
            .at(later, scale(0))
            .at(2 * later, scale(3)),
        },
        Workload {
            name: "roll",
            plan: begin(SetSpec {
                partition: Some(1),
                ..SetSpec::default()
            })
            .at(later, image("b"))
            .at(
                2 * later,
                Action::Partition {
                    set: web.clone(),
                    partition: 0,
                },
            ),
        },
        Workload {
            name: "parallel-roll",
            plan: begin(parallel).at(later, image("b")),
        },
        Workload {
            name: "on-delete",
            plan: begin(SetSpec {
                update: UpdateMode::OnDelete,
                ..SetSpec::default()
            })
            .at(later, image("b"))
            .at(
                later + 10 * seconds,
                Action::DeletePod {
                    pod: "web-1".to_owned(),
                    force: false,
                },
            ),
        },
        Workload {
            name: "retention",
            plan: begin(SetSpec {
                claims: 2,
                ..SetSpec::default()
            })
            .at(
                later,
                Action::Retention {
                    set: web.clone(),
                    retention: claims.retention,
                },
            )
            .at(later + 5 * seconds, scale(1))
            .at(
                later + 6 * seconds,
                Action::Retention {
                    set: web.clone(),
                    retention: ClaimRetention::default(),
                },
            ),
        },
        Workload {
            name: "orphan-adopt",
            plan: begin(SetSpec::default())
                .at(
                    later,
                    Action::Delete {
                        set: web.clone(),
                        cascade: Cascade::Orphan,
                    },
                )
                .at(later + 30 * seconds, Action::Create(SetSpec::default())),
        },
        Workload {
            name: "rollback",
            plan: begin(SetSpec::default())
                .at(later, image("b"))
                .at(later + 8 * seconds, image("a")),
        },
        Workload {
            name: "recreate",
            plan: begin(claims.clone())
                .at(
                    later,
                    Action::Delete {
                        set: web.clone(),
                        cascade: Cascade::Background,
                    },
                )
                .at(later + seconds, Action::Create(claims)),
        },
    ]
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
            let action = Action::Fault {
                fault,
                time: Millis(time),
            };
            let plan = workload.plan.clone().at_write(nth, action);
            plans.push((format!("{name}: {} write {nth}", what.0), plan));
        }
    }
    for at in moments(&reference) {
        let freeze = |resource: Option<&str>| Action::Fault {
            fault: Fault::Watch {
                instance: None,
                resource: resource.map(str::to_owned),
                watch: WatchFault::Freeze,
            },
            time: Millis(HIDDEN),
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
        let storage = commit.entry.object.key.storage;
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
