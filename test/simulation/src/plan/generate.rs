//! Plans from seeds: swarm testing. Each run draws which kinds of actions and faults happen in it,
//! how often, and the environment.

use kube_test_control_plane::faults::FaultError;
use kube_test_control_plane::route::Verb;
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use super::{
    Action, Cascade, ClaimRetention, Fault, FaultRequests, LeaseTimes, MaxUnavailable, Millis,
    Plan, PodEnd, Retain, SetSpec, Settings, Span, Step, Trigger, UpdateMode, WatchFault,
};
use crate::seed;

/// Names of sets.
const NAMES: [&str; 3] = ["web", "db", "kv"];

/// Images; the last ones never become ready while faults last.
const IMAGES: [&str; 5] = ["a", "b", "c", "d", "bad"];

/// Resources that the controllers watch.
const RESOURCES: [&str; 4] = [
    "statefulsets",
    "pods",
    "persistentvolumeclaims",
    "controllerrevisions",
];

impl Plan {
    /// Draws the plan of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let settings = settings(&mut seed::stream(seed, "settings"));
        let mut plan = Self::new(seed, settings.clone());
        let mut users = seed::stream(seed, "users");
        let length = users.random_range(60_000..1_200_000);
        let sets = sets(&mut users);
        for spec in &sets {
            let at = users.random_range(0..length / 4);
            plan = plan.at(at, Action::Create(spec.clone()));
        }
        let kinds: Vec<u32> = (0..USER_ACTIONS)
            .filter(|_| users.random_bool(0.5))
            .collect();
        for _ in 0..users.random_range(5..60) {
            let (Some(kind), Some(spec)) = (kinds.choose(&mut users), sets.choose(&mut users))
            else {
                continue;
            };
            let at = users.random_range(0..length);
            for (later, action) in user_action(*kind, spec, &mut users) {
                plan = plan.at(at + later, action);
            }
        }
        let mut faults = seed::stream(seed, "faults");
        let kinds: Vec<u32> = (0..FAULTS).filter(|_| faults.random_bool(0.4)).collect();
        for _ in 0..faults.random_range(0..40) {
            let Some(kind) = kinds.choose(&mut faults) else {
                continue;
            };
            let at = faults.random_range(0..length);
            let action = fault(*kind, &settings, &sets, &mut faults);
            plan = plan.at(at, action);
        }
        for _ in 0..faults.random_range(0..3) {
            let strikes = [Fault::CrashBefore, Fault::CrashAfter];
            let fault = strikes.choose(&mut faults).cloned();
            let nth = faults.random_range(1..120);
            plan.steps.extend(fault.map(|fault| Step {
                at: Trigger::Write(nth),
                action: Action::Fault {
                    fault,
                    time: Millis(0),
                },
            }));
        }
        plan.steps.sort_by_key(|step| match step.at {
            Trigger::Time(at) => at,
            Trigger::Write(_) => Millis(0),
        });
        plan
    }
}

/// Times of leases in seconds: its length, its holder's deadline, its retry period.
const LEASES: [(u64, u64, u64); 8] = [
    (15, 10, 2),
    (15, 10, 6),
    (15, 10, 6),
    (30, 20, 12),
    (30, 20, 12),
    (60, 40, 24),
    (60, 40, 24),
    (60, 40, 24),
];

fn settings(random: &mut StdRng) -> Settings {
    // Most of the requests of a quiet time are renewals, so few seeds have upstream's short period.
    let lease = *LEASES.choose(random).unwrap_or(&LEASES[0]);
    let lag = *[0, 20, 200, 2_000, 30_000].choose(random).unwrap_or(&20);
    let slow = *[1, 1, 10].choose(random).unwrap_or(&1);
    Settings {
        instances: random.random_range(1..=3),
        workers: random.random_range(1..=8),
        lease: LeaseTimes {
            lease: lease.0,
            renew: lease.1,
            retry: lease.2,
        },
        resync: random.random_bool(0.3).then_some(300),
        latency: Span(0, *[2, 20, 500].choose(random).unwrap_or(&2)),
        lag: Span(0, lag),
        bookmarks: *[5, 60, 60].choose(random).unwrap_or(&60),
        max_unavailable: random.random_bool(0.5),
        consistency: true,
        pod_start: Span(0, 2_000 * slow),
        pod_ready: Span(0, 5_000 * slow),
        pod_stop: Span(0, 3_000 * slow),
        collector_delay: Millis(*[0, 1_000, 30_000].choose(random).unwrap_or(&1_000)),
        qps: *[0, 0, 20].choose(random).unwrap_or(&0),
        restart: Span(0, 10_000),
    }
}

fn sets(random: &mut StdRng) -> Vec<SetSpec> {
    let count = random.random_range(1..=NAMES.len());
    let names = NAMES.iter().take(count);
    names.map(|name| set(name, random)).collect()
}

fn set(name: &str, random: &mut StdRng) -> SetSpec {
    let on_delete = random.random_bool(0.15);
    let replicas = random.random_range(0..=5);
    SetSpec {
        name: name.to_owned(),
        image: "a".to_owned(),
        replicas,
        parallel: random.random_bool(0.5),
        update: if on_delete {
            UpdateMode::OnDelete
        } else {
            UpdateMode::RollingUpdate
        },
        partition: random.random_bool(0.3).then(|| random.random_range(0..=4)),
        max_unavailable: random.random_bool(0.5).then(|| max_unavailable(random)),
        min_ready_seconds: *[0, 0, 5, 30].choose(random).unwrap_or(&0),
        claims: random.random_range(0..=2),
        retention: retention(random),
        start: *[0, 0, 0, 2].choose(random).unwrap_or(&0),
        history: Some(random.random_range(0..=3)),
        grace: *[1, 10, 30].choose(random).unwrap_or(&10),
    }
}

fn max_unavailable(random: &mut StdRng) -> MaxUnavailable {
    if random.random_bool(0.5) {
        MaxUnavailable::Pods(random.random_range(1..=3))
    } else {
        MaxUnavailable::Percent(format!("{}%", random.random_range(10..=70)))
    }
}

fn retention(random: &mut StdRng) -> ClaimRetention {
    let mut retain = || {
        if random.random_bool(0.5) {
            Retain::Retain
        } else {
            Retain::Delete
        }
    };
    ClaimRetention {
        when_deleted: retain(),
        when_scaled: retain(),
    }
}

/// Number of kinds of user actions.
const USER_ACTIONS: u32 = 17;

/// Draws an action of users, with the time in milliseconds after the first of its steps.
fn user_action(kind: u32, spec: &SetSpec, random: &mut StdRng) -> Vec<(u64, Action)> {
    let set = spec.name.clone();
    let start = spec.start;
    let pod = |random: &mut StdRng| format!("{set}-{}", start + random.random_range(0..5));
    let one = |action| vec![(0, action)];
    match kind {
        0 | 1 => one(Action::Scale {
            replicas: random.random_range(0..=6),
            set,
        }),
        2 | 3 => one(Action::Image {
            image: (*IMAGES.choose(random).unwrap_or(&"a")).to_owned(),
            set,
        }),
        4 => one(Action::Partition {
            partition: random.random_range(0..=5),
            set,
        }),
        5 => one(Action::MaxUnavailable {
            max: max_unavailable(random),
            set,
        }),
        6 => one(Action::Retention {
            retention: retention(random),
            set,
        }),
        7 => {
            let cascade = [Cascade::Background, Cascade::Foreground, Cascade::Orphan];
            let cascade = *cascade.choose(random).unwrap_or(&Cascade::Background);
            let again = random.random_range(0..60_000);
            vec![
                (0, Action::Delete { set, cascade }),
                (again, Action::Create(spec.clone())),
            ]
        }
        8 => one(Action::DeletePod {
            pod: pod(random),
            force: random.random_bool(0.3),
        }),
        9 => {
            let pod = pod(random);
            let relabel = |matches| Action::Relabel {
                pod: pod.clone(),
                matches,
            };
            let later = random.random_range(1_000..120_000);
            vec![(0, relabel(false)), (later, relabel(true))]
        }
        10 => one(Action::DeleteClaim {
            claim: format!("data0-{}", pod(random)),
        }),
        11 => {
            let names = ["-01", "--1", "-99999999999", "-1-debug", "-x"];
            let name = names.choose(random).unwrap_or(&"-x");
            one(Action::Decoy {
                pod: format!("{set}{name}"),
                set,
            })
        }
        12 => one(Action::TakeClaim {
            claim: format!("data0-{}", pod(random)),
        }),
        13 => {
            let ends = [PodEnd::Fails, PodEnd::Succeeds, PodEnd::Evicted];
            one(Action::End {
                pod: pod(random),
                how: *ends.choose(random).unwrap_or(&PodEnd::Fails),
            })
        }
        14 => {
            let pod = pod(random);
            let ready = |ready| Action::Ready {
                pod: pod.clone(),
                ready,
            };
            let later = random.random_range(100..60_000);
            vec![(0, ready(false)), (later, ready(true))]
        }
        15 => one(Action::MinReadySeconds {
            seconds: *[0, 5, 30].choose(random).unwrap_or(&0),
            set,
        }),
        _ => one(Action::HistoryLimit {
            limit: random.random_range(0..=3),
            set,
        }),
    }
}

/// Number of kinds of faults.
const FAULTS: u32 = 20;

/// Draws a fault.
fn fault(kind: u32, settings: &Settings, sets: &[SetSpec], random: &mut StdRng) -> Action {
    let instance = random.random_range(0..settings.instances);
    let some_instance = random.random_bool(0.5).then_some(instance);
    let time = Millis(random.random_range(1_000..180_000));
    let requests = requests(some_instance, random);
    let resource = random
        .random_bool(0.6)
        .then(|| (*RESOURCES.choose(random).unwrap_or(&"pods")).to_owned());
    let watch = |watch| Fault::Watch {
        instance: some_instance,
        resource: resource.clone(),
        watch,
    };
    let lease = settings.lease.lease * 1_000;
    let fault = match kind {
        0 | 1 => {
            return Action::Crash {
                instance: some_instance,
            };
        }
        2 => Fault::Reject {
            requests,
            error: error(random),
        },
        3 => Fault::Drop(requests),
        4 | 5 => Fault::LoseAnswer(requests),
        6 => Fault::Hold {
            requests,
            delay: Span(
                0,
                *[1_000, lease, 3 * lease].choose(random).unwrap_or(&lease),
            ),
        },
        7 => Fault::HoldAnswer {
            requests,
            delay: Span(
                0,
                *[1_000, lease, 3 * lease].choose(random).unwrap_or(&lease),
            ),
        },
        8 | 9 => watch(WatchFault::Freeze),
        10 => watch(WatchFault::Lag {
            delay: Span(0, *[500, 10_000, 60_000].choose(random).unwrap_or(&500)),
        }),
        11 => watch(WatchFault::HoldBack {
            events: random.random_range(1..6),
        }),
        12 => watch(WatchFault::Cut),
        13 => watch(WatchFault::Expire),
        14 => watch(WatchFault::NoBookmarks),
        15 => Fault::Isolate {
            instance: some_instance,
        },
        16 => Fault::Outage,
        17 => {
            if random.random_bool(0.5) {
                Fault::DenyPods
            } else {
                let wanted: u32 = sets.iter().map(|set| set.replicas).sum();
                let pods = random.random_range(1..=wanted.max(1));
                Fault::Quota {
                    pods: pods as usize,
                }
            }
        }
        18 => Fault::Skew {
            instance,
            millis: random.random_range(-120_000..=120_000),
        },
        _ => Fault::Compact,
    };
    Action::Fault { fault, time }
}

fn requests(instance: Option<usize>, random: &mut StdRng) -> FaultRequests {
    let verbs = [
        Verb::Create,
        Verb::Update,
        Verb::Patch,
        Verb::Delete,
        Verb::Get,
    ];
    let verbs = if random.random_bool(0.5) {
        verbs.choose(random).into_iter().copied().collect()
    } else {
        Vec::new()
    };
    let mut resources: Vec<Option<&str>> = vec![None; 4];
    resources.extend(RESOURCES.iter().map(|it| Some(*it)));
    resources.push(Some("leases"));
    FaultRequests {
        instance,
        verbs,
        resource: resources
            .choose(random)
            .copied()
            .flatten()
            .map(str::to_owned),
        percent: *[5, 20, 50, 100].choose(random).unwrap_or(&20),
    }
}

/// Draws an error that a healthy API server may answer; that an object doesn't exist is always true.
fn error(random: &mut StdRng) -> FaultError {
    let errors = [
        FaultError::Conflict,
        FaultError::AlreadyExists,
        FaultError::ServiceUnavailable,
        FaultError::Timeout,
        FaultError::InternalError {
            message: "not now".to_owned(),
        },
        FaultError::TooManyRequests {
            retry_after_seconds: random.random_range(0..=20),
        },
        FaultError::Overloaded {
            retry_after_seconds: random.random_range(1..=5),
        },
        FaultError::Forbidden {
            message: "not now".to_owned(),
        },
        FaultError::Invalid {
            field: "spec".to_owned(),
            message: "not now".to_owned(),
        },
    ];
    errors
        .choose(random)
        .cloned()
        .unwrap_or(FaultError::Conflict)
}
