//! Tests of the model against the recordings, and of the product against the model.

mod mutation;

use std::path::Path;

use kube_apimachinery::json::to_go_string;
use serde_json::Value;

use self::mutation::{SeededRng, mutate};
use super::*;
use crate::diff::diff;
use crate::files::lines;

/// One in this many recorded cases is mutated.
const STRIDE: usize = 5;
/// Maximum number of reported differences.
const DIFFERING_MAX: usize = 10;
/// Variable with the number of generated syncs for each recorded case.
const ROUNDS_VARIABLE: &str = "STATEFULSET_GENERATED_ROUNDS";
/// Variable with the only seed to run, as printed with a difference.
const SEED_VARIABLE: &str = "STATEFULSET_GENERATED_SEED";

pub(crate) fn recorded() -> Vec<String> {
    lines(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/sync.jsonl.gz")).unwrap()
}

fn differences(case: &Case, expected: &Outcome, actual: &Outcome) -> Option<String> {
    (expected != actual).then(|| {
        let lines = diff(&expected.to_value(), &actual.to_value());
        format!("{}\n{}\n", case.id, lines.join("\n"))
    })
}

#[test]
fn model_without_deviations_matches_every_recording() {
    let compare = |line: &String| {
        let case = Case::parse(line).unwrap();
        let modelled = run(&case, Rules::UPSTREAM).unwrap();
        differences(&case, &case.expected().unwrap(), &modelled)
    };
    let differing: String = recorded().iter().filter_map(compare).collect();
    assert!(differing.is_empty(), "{differing}");
}

/// Compares generated syncs: one for each recorded case of a sample, or for every recorded case the
/// number in [`ROUNDS_VARIABLE`], or only the one of [`SEED_VARIABLE`].
fn compare_generated(version: &str) {
    let recorded = recorded();
    let rounds = std::env::var(ROUNDS_VARIABLE).ok();
    let (stride, rounds) = rounds.map_or((STRIDE, 1), |rounds| {
        (1, rounds.parse().expect("the rounds are a number"))
    });
    let count = u64::try_from(recorded.len()).unwrap();
    let only = std::env::var(SEED_VARIABLE).ok();
    let only: Option<u64> = only.map(|seed| seed.parse().expect("the seed is a number"));
    let seeds = match only {
        Some(seed) => vec![seed],
        None => (0..rounds * count).step_by(stride).collect(),
    };
    let cases = seeds
        .into_iter()
        .map(|seed| (seed, &recorded[usize::try_from(seed % count).unwrap()]));
    let (mut differing, mut total) = (Vec::new(), 0);
    for (seed, line) in cases {
        total += 1;
        let mut case: Value = serde_json::from_str(line).unwrap();
        if version != "1.36" {
            case["emulatedVersion"] = version.into();
            // Only these gates exist in every version.
            let kept = [
                "MaxUnavailableStatefulSet",
                "StatefulSetSemanticRevisionComparison",
            ];
            let gates = case["featureGates"].as_object_mut().unwrap();
            gates.retain(|name, _| kept.contains(&name.as_str()));
        }
        let changes = mutate(&mut case, &mut SeededRng::new(seed));
        let case = Case::parse(&to_go_string(&case)).unwrap();
        let product = crate::sync::outcome(&case).unwrap();
        let modelled = run(&case, Rules::PRODUCT).unwrap();
        if let Some(text) = differences(&case, &modelled, &product) {
            differing.push(format!("{seed}: {changes:?} {text}"));
        }
    }
    let count = differing.len();
    differing.truncate(DIFFERING_MAX);
    assert_eq!(
        count,
        0,
        "{count} differ in {version}\n{}",
        differing.join("\n")
    );
    assert!(
        total >= 354 || only.is_some(),
        "a sample has 354 syncs, not {total}"
    );
    println!("{version}: {total} generated syncs agree");
}

#[test]
fn model_with_deviations_matches_the_product() {
    compare_generated("1.36");
}

#[test]
fn model_matches_the_product_as_1_33() {
    compare_generated("1.33");
}

#[test]
fn model_matches_the_product_as_1_34() {
    compare_generated("1.34");
}

#[test]
fn model_matches_the_product_as_1_35() {
    compare_generated("1.35");
}

#[test]
fn model_matches_the_product_as_1_37() {
    compare_generated("1.37");
}
