//! Updates of running pods in plans with opt-ins. They came later and have a separate stream, so that
//! the plans of the other seeds stay.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::plan::action::Actions;
use crate::plan::opt_ins::{RESIZE, RESIZE_DELAY, choose, resize_as, size};
use crate::plan::{Action, Plan};
use crate::seed;

/// Values of the annotation. The last one can't be used.
const SCOPES: [&str; 6] = [
    "resources",
    "resources",
    "resources",
    "metadata",
    "none",
    "all",
];

/// Values of the time limit. The last one can't be used.
const TIMEOUTS: [&str; 4] = ["20", "1m", "5m", "soon"];

/// Ways in which nodes treat resizes.
const RESIZES: [&str; 3] = ["deferred", "infeasible", "applies"];

/// A kind of action on a set.
type Kind = fn(&str, &mut StdRng) -> Actions;

/// All kinds. A kind listed twice is twice as likely.
const KINDS: [Kind; 8] = [
    resize, resize, correct, correct, take_back, pause, opt_in, obstruct,
];

/// Adds updates of running pods to the plans of some seeds.
pub(super) fn with_updates(mut plan: Plan, seed: u64, names: &[String]) -> Plan {
    let mut random = seed::stream(seed, "in-place");
    if !random.random_bool(0.35) {
        return plan;
    }
    let end = plan.end();
    for name in names {
        let at = random.random_range(0..=end.0 / 4);
        plan = plan.at(at, choose(name, "in-place", Some("resources")));
        plan = plan.at(at, size_of(name, &mut random));
    }
    for _ in 0..random.random_range(3..20) {
        let (Some(kind), Some(set)) = (KINDS.choose(&mut random), names.choose(&mut random)) else {
            continue;
        };
        let at = random.random_range(0..=end.0);
        for (later, action) in kind(set, &mut random) {
            plan = plan.at(at + later, action);
        }
    }
    plan
}

fn size_of(set: &str, random: &mut StdRng) -> Action {
    let cpu = ["100m", "200m", "1"].choose(random).unwrap_or(&"1");
    let tier = ["a", "b", "c"].choose(random).unwrap_or(&"a");
    size(set, cpu, tier)
}

fn resize(set: &str, random: &mut StdRng) -> Actions {
    vec![(0, size_of(set, random))]
}

/// A change, and another one while the first may be in flight.
fn correct(set: &str, random: &mut StdRng) -> Actions {
    let later = random.random_range(1..10_000);
    vec![(0, size_of(set, random)), (later, size_of(set, random))]
}

/// A change, and the change back.
fn take_back(set: &str, random: &mut StdRng) -> Actions {
    let later = random.random_range(1..10_000);
    vec![
        (0, size(set, "100m", "a")),
        (later, size(set, "200m", "b")),
        (later * 2, size(set, "100m", "a")),
    ]
}

/// A change, and a pause while it may be in flight.
fn pause(set: &str, random: &mut StdRng) -> Actions {
    let during = random.random_range(1..10_000);
    vec![
        (0, size_of(set, random)),
        (during, choose(set, "paused", Some("true"))),
        (during + 60_000, choose(set, "paused", None)),
    ]
}

/// A choice, and another time limit.
fn opt_in(set: &str, random: &mut StdRng) -> Actions {
    let scope = SCOPES.choose(random).copied();
    let timeout = TIMEOUTS.choose(random).copied();
    vec![
        (0, choose(set, "in-place", scope)),
        (0, choose(set, "in-place-timeout", timeout)),
    ]
}

/// Nodes that treat resizes in another way, or take longer for them.
fn obstruct(set: &str, random: &mut StdRng) -> Actions {
    let mut actions = Vec::new();
    for ordinal in 0..5 {
        let pod = format!("{set}-{ordinal}");
        let how = RESIZES.choose(random).copied();
        let delay = ["0s", "5s", "1s..60s"].choose(random).copied();
        actions.push((0, resize_as(&pod, RESIZE, how)));
        actions.push((0, resize_as(&pod, RESIZE_DELAY, delay)));
        if random.random_bool(0.7) {
            let later = random.random_range(1_000..120_000);
            actions.push((later, resize_as(&pod, RESIZE, None)));
        }
    }
    actions
}
