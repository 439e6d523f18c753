//! Plans with a fence: labels that flap, policies that go, processes that die.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use super::{environment, users};
use crate::plan::action::Actions;
use crate::plan::{
    Action, Fault, FaultRequests, Fence, FencePart, Millis, PartState, Plan, Settings, Span,
};
use crate::seed;

/// Longest time in milliseconds from the start to the last step.
const LENGTH_MAX: u64 = 600_000;

/// A kind of change of the fence.
type Kind = fn(&mut StdRng) -> Actions;

/// All kinds. A kind listed twice is twice as likely.
const KINDS: [Kind; 6] = [flap, flap, hand_over, lose_part, lose_part, reinstall];

/// Draws the plan of a seed, with a fence.
pub fn of_fence_seed(seed: u64) -> Plan {
    let mut random = seed::stream(seed, "fence");
    let settings = settings(seed, &mut random);
    let mut plan = Plan::new(seed, settings.clone());
    let length = random.random_range(60_000..LENGTH_MAX);
    let sets = environment::sets(&mut random);
    for spec in &sets {
        let at = random.random_range(0..length / 4);
        plan = plan.at(at, Action::Create(spec.clone()));
    }
    if random.random_bool(0.7) {
        plan = plan.at(
            random.random_range(0..10_000),
            Action::Label { served: true },
        );
    }
    for _ in 0..random.random_range(5..40) {
        let (Some(kind), Some(spec)) = (users::KINDS.choose(&mut random), sets.choose(&mut random))
        else {
            continue;
        };
        let at = random.random_range(0..length);
        for (later, action) in kind(spec, &mut random) {
            plan = plan.at(at + later, action);
        }
    }
    let kinds: Vec<_> = KINDS.iter().filter(|_| random.random_bool(0.6)).collect();
    for _ in 0..random.random_range(1..12) {
        let Some(kind) = kinds.choose(&mut random) else {
            continue;
        };
        let at = random.random_range(0..length);
        for (later, action) in kind(&mut random) {
            plan = plan.at(at + later, action);
        }
    }
    let processes = settings.processes();
    for _ in 0..random.random_range(0..6) {
        let at = random.random_range(0..length);
        plan = plan.at(at, disturb(&settings, processes, &mut random));
    }
    plan.steps.sort_by_key(|step| step.at.time());
    plan
}

/// The environment: as in other plans, but caches are not far behind, because a policy that a process
/// can't see stops nothing.
fn settings(seed: u64, random: &mut StdRng) -> Settings {
    let settings = environment::settings(&mut seed::stream(seed, "settings"));
    let lag = *[200, 1_100, 1_100, 5_000].choose(random).unwrap_or(&200);
    Settings {
        instances: random.random_range(1..=2),
        lag: Span(0, *[0, 20, 200, 2_000].choose(random).unwrap_or(&20)),
        pages: None,
        versions: Vec::new(),
        consistency: true,
        fence: Some(Fence {
            lag: Span(0, lag),
            built_in: random.random_range(1..=2),
        }),
        ..settings
    }
}

/// The label comes and goes, from several times a second to every half minute.
fn flap(random: &mut StdRng) -> Actions {
    let pause = *[200, 1_000, 3_000, 30_000].choose(random).unwrap_or(&1_000);
    let mut at = 0;
    let times = random.random_range(2..20);
    let mut served = random.random_bool(0.5);
    let mut actions = Vec::new();
    for _ in 0..times {
        actions.push((at, Action::Label { served }));
        served = !served;
        at += random.random_range(pause / 4..=pause);
    }
    actions
}

fn hand_over(random: &mut StdRng) -> Actions {
    let served = random.random_bool(0.5);
    vec![(0, Action::Label { served })]
}

/// A part is changed or deleted, and repaired later.
fn lose_part(random: &mut StdRng) -> Actions {
    let part = *FencePart::ALL.choose(random).unwrap_or(&FencePart::Fence);
    let lost = if random.random_bool(0.5) {
        PartState::Missing
    } else {
        PartState::Open
    };
    let later = *[500, 5_000, 60_000].choose(random).unwrap_or(&5_000);
    let later = random.random_range(later / 4..=later);
    vec![
        (0, Action::Part { part, state: lost }),
        (
            later,
            Action::Part {
                part,
                state: PartState::Shipped,
            },
        ),
    ]
}

/// All parts go, and are installed again one by one.
fn reinstall(random: &mut StdRng) -> Actions {
    let state = PartState::Missing;
    let gone = FencePart::ALL.map(|part| (0, Action::Part { part, state }));
    let mut actions = Vec::from(gone);
    let mut at = 0;
    for part in FencePart::ALL {
        at += random.random_range(10..10_000);
        let state = PartState::Shipped;
        actions.push((at, Action::Part { part, state }));
    }
    actions
}

/// A process dies, is suspended, or loses requests.
fn disturb(settings: &Settings, processes: usize, random: &mut StdRng) -> Action {
    let instance = random.random_range(0..processes);
    let lease = settings.lease.lease * 1_000;
    match random.random_range(0..4) {
        0 => Action::Crash {
            instance: Some(instance),
        },
        1 => Action::Fault {
            fault: Fault::Suspend {
                instance: Some(instance),
            },
            time: Millis(random.random_range(1_000..lease * 2)),
        },
        2 => Action::Fault {
            fault: Fault::LoseResponse(requests(instance, random)),
            time: Millis(random.random_range(1_000..60_000)),
        },
        _ => Action::Fault {
            fault: Fault::Drop(requests(instance, random)),
            time: Millis(random.random_range(1_000..60_000)),
        },
    }
}

/// Writes and reads of an instance, but no watches.
fn requests(instance: usize, random: &mut StdRng) -> FaultRequests {
    FaultRequests {
        instance: Some(instance),
        percent: *[10, 50].choose(random).unwrap_or(&10),
        ..FaultRequests::default()
    }
}
