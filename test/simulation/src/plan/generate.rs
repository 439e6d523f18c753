//! Plans from seeds: swarm testing. Each run draws which kinds of actions and faults happen in it,
//! how often, and the environment.

mod environment;
mod faults;
mod fence;
mod opt_ins;
mod users;

use rand::RngExt as _;
use rand::seq::IndexedRandom as _;

use super::{Action, Fault, Millis, Plan, SetSpec, Step, Trigger};
use crate::seed;
pub use fence::of_fence_seed;
pub use opt_ins::of_opt_in_seed;

/// Longest time in milliseconds from the start to the last step.
const LENGTH_MAX: u64 = 1_200_000;

/// Draws the plan of a seed.
pub fn of_seed(seed: u64) -> Plan {
    let settings = environment::settings(&mut seed::stream(seed, "settings"));
    let mut plan = Plan::new(seed, settings.clone());
    let mut random = seed::stream(seed, "users");
    let length = random.random_range(60_000..LENGTH_MAX);
    let sets = environment::sets(&mut random);
    for spec in &sets {
        let at = random.random_range(0..length / 4);
        plan = plan.at(at, Action::Create(spec.clone()));
    }
    let kinds: Vec<_> = users::KINDS
        .iter()
        .filter(|_| random.random_bool(0.5))
        .collect();
    for _ in 0..random.random_range(5..60) {
        let (Some(kind), Some(spec)) = (kinds.choose(&mut random), sets.choose(&mut random)) else {
            continue;
        };
        let at = random.random_range(0..length);
        for (later, action) in kind(spec, &mut random) {
            plan = plan.at(at + later, action);
        }
    }
    let mut random = seed::stream(seed, "faults");
    let kinds: Vec<_> = faults::KINDS
        .iter()
        .filter(|_| random.random_bool(0.4))
        .collect();
    for _ in 0..random.random_range(0..40) {
        let Some(kind) = kinds.choose(&mut random) else {
            continue;
        };
        let at = random.random_range(0..length);
        let scene = faults::Scene::draw(&settings, &sets, &mut random);
        for (later, action) in kind(&scene, &mut random) {
            plan = plan.at(at + later, action);
        }
    }
    plan = with_later_kinds(plan, seed, length, &sets);
    let lease = Millis(settings.lease.lease * 1_000);
    let gap = Millis((settings.lease.renew + settings.lease.retry / 2) * 1_000);
    for _ in 0..random.random_range(0..4) {
        let hits = [
            (Fault::CrashBefore, Millis(0)),
            (Fault::CrashAfter, Millis(0)),
            (Fault::Suspend { instance: None }, gap),
            (Fault::Suspend { instance: None }, Millis(lease.0 * 2)),
            (Fault::Isolate { instance: None }, Millis(lease.0 * 2)),
        ];
        let hit = hits.choose(&mut random).cloned();
        let nth = random.random_range(1..120);
        plan.steps.extend(hit.map(|(fault, time)| Step {
            at: Trigger::Write(nth),
            action: Action::Fault { fault, time },
        }));
    }
    plan.steps.sort_by_key(|step| step.at.time());
    plan
}

/// Adds actions of the kinds that came later. They have separate streams, so that the plans of
/// all seeds keep their other steps.
fn with_later_kinds(mut plan: Plan, seed: u64, length: u64, sets: &[SetSpec]) -> Plan {
    let mut random = seed::stream(seed, "backups");
    if random.random_bool(0.3) {
        for _ in 0..random.random_range(1..6) {
            let Some(spec) = sets.choose(&mut random) else {
                continue;
            };
            let at = random.random_range(0..length);
            for (later, action) in users::restore_owners(spec, &mut random) {
                plan = plan.at(at + later, action);
            }
        }
    }
    let mut random = seed::stream(seed, "connections");
    if random.random_bool(0.3) {
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..length);
            let scene = faults::Scene::draw(&plan.settings, sets, &mut random);
            for (later, action) in faults::leave_unprocessed(&scene, &mut random) {
                plan = plan.at(at + later, action);
            }
        }
    }
    plan
}
