//! Claims that grow: storage classes, sizes, and users who raise, lower and remove them.

use std::collections::BTreeMap;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::json;

use crate::plan::opt_ins::{FIXED, GROWING, WITH_POD, annotation, choose};
use crate::plan::{Action, Millis, Plan};
use crate::seed;

/// Storage classes of claims. One listed twice is twice as likely.
const CLASSES: [Option<&str>; 5] = [
    Some(GROWING),
    Some(GROWING),
    Some(WITH_POD),
    Some(FIXED),
    None,
];

/// Sizes; the last ones can't be used, or name a template that some sets lack.
const SIZES: [&str; 8] = [
    "data0=2Gi",
    "data0=2Gi",
    "data0=3Gi",
    "data0=4Gi",
    "data0=1Gi",
    "none",
    "data0=2Gi,data1=3Gi",
    "data0=big",
];

/// Values of `claim-resize`; the last one can't be used.
const RESIZES: [&str; 6] = [
    "online", "with-pod", "with-pod", "with-pod", "with-pod", "offline",
];

/// Adds growth to half of the plans. Its choices are a stream of their own, so the other choices of a seed
/// stay.
pub(super) fn add(mut plan: Plan, seed: u64, names: &[String], end: Millis) -> Plan {
    let mut random = seed::stream(seed, "claim-growth");
    if random.random_bool(0.5) {
        return plan;
    }
    // A pod keeps its volumes, so a further template would never fit the pods that the next set of a
    // name adopts.
    let mut claims: BTreeMap<String, u32> = BTreeMap::new();
    for step in &mut plan.steps {
        if let Action::Create(spec) = &mut step.action {
            spec.class = CLASSES
                .choose(&mut random)
                .copied()
                .flatten()
                .map(str::to_owned);
            if random.random_bool(0.5) {
                spec.claims = spec.claims.max(1);
            }
            let known = claims.entry(spec.name.clone()).or_insert(spec.claims);
            spec.claims = *known;
            if spec.class.as_deref() == Some(WITH_POD) && random.random_bool(0.5) {
                let key = annotation("claim-resize");
                spec.annotations.insert(key, "with-pod".to_owned());
            }
            if random.random_bool(0.3) {
                let size = some(&SIZES, &mut random);
                spec.annotations
                    .insert(annotation("claim-size"), size.to_owned());
            }
        }
    }
    for _ in 0..random.random_range(1..10) {
        let Some(set) = names.choose(&mut random) else {
            return plan;
        };
        let at = random.random_range(0..=end.0);
        let claim = format!("data0-{set}-{}", random.random_range(0..4));
        let action = match random.random_range(0..12) {
            // The claim is no longer the set's, or is it again.
            10 => relabel(&claim, "other"),
            11 => relabel(&claim, set),
            0 => choose(set, "claim-size", None),
            1 => choose(set, "claim-resize", Some(some(&RESIZES, &mut random))),
            _ => choose(set, "claim-size", Some(some(&SIZES, &mut random))),
        };
        plan = plan.at(at, action);
    }
    plan
}

fn relabel(claim: &str, app: &str) -> Action {
    let change = json!({"metadata": {"labels": {"app": app}}});
    Action::edit("persistentvolumeclaims", claim, change)
}

fn some<'a>(values: &[&'a str], random: &mut StdRng) -> &'a str {
    values.choose(random).copied().unwrap_or_default()
}
