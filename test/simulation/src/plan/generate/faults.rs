//! Faults.

use kube_test_control_plane::faults::FaultError;
use kube_test_control_plane::route::Verb;
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::plan::action::Actions;
use crate::plan::{Action, Fault, FaultRequests, Millis, SetSpec, Settings, Span, WatchFault};

/// A kind of fault.
type Kind = fn(&Scene, &mut StdRng) -> Actions;

/// All kinds. A kind listed twice is twice as likely.
pub(super) const KINDS: [Kind; 31] = [
    crash,
    crash,
    |it, random| {
        it.during(Fault::Reject {
            requests: it.requests.clone(),
            error: error(&it.requests, random),
        })
    },
    burst,
    |it, _| it.during(Fault::Drop(it.requests.clone())),
    |it, _| it.during(Fault::LoseResponse(it.requests.clone())),
    |it, _| it.during(Fault::LoseResponse(it.requests.clone())),
    |it, random| {
        it.during(Fault::DelayRequest {
            requests: it.requests.clone(),
            delay: it.delay(random),
        })
    },
    |it, random| {
        it.during(Fault::DelayResponse {
            requests: it.requests.clone(),
            delay: it.delay(random),
        })
    },
    |it, _| it.watch(WatchFault::Freeze),
    |it, _| it.watch(WatchFault::Freeze),
    |it, random| {
        it.watch(WatchFault::Lag {
            delay: Span(0, *[500, 10_000, 60_000].choose(random).unwrap_or(&500)),
        })
    },
    |it, random| {
        it.watch(WatchFault::HoldBack {
            events: random.random_range(1..6),
        })
    },
    |it, _| it.watch(WatchFault::Cut),
    |it, _| it.watch(WatchFault::Expire),
    |it, _| it.watch(WatchFault::NoBookmarks),
    |it, _| {
        it.during(Fault::FrozenReplica {
            instance: it.some_instance,
        })
    },
    frozen_replica_and_crash,
    |it, _| {
        it.during(Fault::Isolate {
            instance: it.some_instance,
        })
    },
    suspend,
    suspend,
    |it, _| it.during(Fault::Outage),
    long_outage,
    |it, _| it.during(Fault::DenyPods),
    |it, random| {
        it.during(Fault::DenyImage {
            image: (*["a", "b", "c"].choose(random).unwrap_or(&"b")).to_owned(),
        })
    },
    |it, _| it.during(Fault::MutatePods),
    |it, random| {
        it.during(Fault::Quota {
            pods: random.random_range(1..=it.pods.max(1)),
        })
    },
    |it, random| {
        it.during(Fault::Skew {
            instance: it.instance,
            millis: random.random_range(-120_000..=120_000),
        })
    },
    |it, _| it.during(Fault::Compact),
    rivals,
    |it, _| it.during(Fault::NewDefaults),
];

/// Resources that the controllers watch.
const RESOURCES: [&str; 4] = [
    "statefulsets",
    "pods",
    "persistentvolumeclaims",
    "controllerrevisions",
];

/// Drawn values that kinds of faults share.
pub(super) struct Scene {
    instance: usize,
    /// One instance, or all.
    some_instance: Option<usize>,
    time: u64,
    requests: FaultRequests,
    resource: Option<String>,
    /// The lease in milliseconds.
    lease: u64,
    /// The deadline and the period of renewals in milliseconds.
    renewal: (u64, u64),
    /// Number of pods that the sets want at first.
    pods: usize,
}

impl Scene {
    pub(super) fn draw(settings: &Settings, sets: &[SetSpec], random: &mut StdRng) -> Self {
        let instance = random.random_range(0..settings.instances);
        let some_instance = random.random_bool(0.5).then_some(instance);
        let wanted = sets.iter().map(|set| set.replicas as usize);
        Self {
            instance,
            some_instance,
            time: random.random_range(1_000..180_000),
            requests: requests(some_instance, random),
            resource: random
                .random_bool(0.6)
                .then(|| (*RESOURCES.choose(random).unwrap_or(&"pods")).to_owned()),
            lease: settings.lease.lease * 1_000,
            renewal: (settings.lease.renew * 1_000, settings.lease.retry * 1_000),
            pods: wanted.sum(),
        }
    }

    fn during(&self, fault: Fault) -> Actions {
        vec![(0, Action::fault(fault, self.time))]
    }

    fn watch(&self, watch: WatchFault) -> Actions {
        self.during(Fault::Watch {
            instance: self.some_instance,
            resource: self.resource.clone(),
            watch,
        })
    }

    fn delay(&self, random: &mut StdRng) -> Span {
        let lease = self.lease;
        let longest = [1_000, lease, 3 * lease];
        Span(0, *longest.choose(random).unwrap_or(&lease))
    }
}

fn crash(it: &Scene, _: &mut StdRng) -> Actions {
    let instance = it.some_instance;
    vec![(0, Action::Crash { instance })]
}

/// An instance stops, often until a moment at which it may no longer write and has not given up
/// the lease yet.
fn suspend(it: &Scene, random: &mut StdRng) -> Actions {
    let (renew, retry) = it.renewal;
    let time = if random.random_bool(0.6) {
        random.random_range(renew..=renew + retry)
    } else {
        it.time
    };
    let instance = it.some_instance;
    vec![(0, Action::fault(Fault::Suspend { instance }, time))]
}

/// Many short times in which all such requests fail.
fn burst(it: &Scene, random: &mut StdRng) -> Actions {
    let requests = FaultRequests {
        percent: 100,
        ..it.requests.clone()
    };
    let times = 0..random.random_range(3..10);
    times
        .map(|nth| {
            let error = error(&requests, random);
            let fault = Fault::Reject {
                requests: requests.clone(),
                error,
            };
            let at = nth * random.random_range(1_000..10_000);
            (at, Action::fault(fault, random.random_range(100..3_000)))
        })
        .collect()
}

/// The leader dies, and the API server of the next one stopped learning before.
fn frozen_replica_and_crash(it: &Scene, random: &mut StdRng) -> Actions {
    let frozen = Fault::FrozenReplica { instance: None };
    let crash = Action::Crash { instance: None };
    let later = random.random_range(100..20_000);
    vec![
        (0, Action::fault(frozen, later + it.lease * 2)),
        (later, crash),
    ]
}

/// The API server ends connections gracefully for a time, as with `--goaway-chance`.
pub(super) fn leave_unprocessed(it: &Scene, _: &mut StdRng) -> Actions {
    it.during(Fault::LeaveUnprocessed(it.requests.clone()))
}

fn long_outage(it: &Scene, random: &mut StdRng) -> Actions {
    let minutes = random.random_range(3..=30);
    let _ = it;
    vec![(0, Action::fault(Fault::Outage, minutes * 60_000))]
}

fn rivals(it: &Scene, random: &mut StdRng) -> Actions {
    let fault = if random.random_bool(0.5) {
        Fault::Storm {
            resource: (*RESOURCES.choose(random).unwrap_or(&"pods")).to_owned(),
            every: Millis(random.random_range(50..2_000)),
        }
    } else {
        Fault::Meddle {
            every: Millis(random.random_range(500..20_000)),
        }
    };
    vec![(0, Action::fault(fault, it.time.min(60_000)))]
}

fn requests(instance: Option<usize>, random: &mut StdRng) -> FaultRequests {
    let verbs = [
        Verb::Create,
        Verb::Update,
        Verb::Patch,
        Verb::Delete,
        Verb::Get,
        Verb::List,
        Verb::Watch,
    ];
    let verbs = if random.random_bool(0.6) {
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

/// Draws an error that a healthy API server may return. Never `NotFound`: the controller
/// takes it as proof that the object does not exist.
fn error(requests: &FaultRequests, random: &mut StdRng) -> FaultError {
    let message = || "not now".to_owned();
    let mut errors = vec![
        FaultError::ServiceUnavailable,
        FaultError::Timeout,
        FaultError::InternalError { message: message() },
        FaultError::TooManyRequests {
            retry_after_seconds: random.random_range(0..=20),
        },
        FaultError::Overloaded {
            retry_after_seconds: random.random_range(1..=5),
        },
        FaultError::Forbidden { message: message() },
    ];
    let reads = [Verb::Get, Verb::List, Verb::Watch];
    if requests.verbs.iter().all(|verb| !reads.contains(verb)) {
        errors.extend([
            FaultError::Conflict,
            FaultError::AlreadyExists,
            FaultError::Invalid {
                field: "spec".to_owned(),
                message: message(),
            },
        ]);
    } else if requests.verbs != [Verb::Get] {
        errors.push(FaultError::Expired);
    }
    errors
        .choose(random)
        .cloned()
        .unwrap_or(FaultError::Conflict)
}
