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
        let modelled = run(&case, Rules::REFERENCE).unwrap();
        differences(&case, &case.expected().unwrap(), &modelled)
    };
    let differing: String = recorded().iter().filter_map(compare).collect();
    assert!(differing.is_empty(), "{differing}");
}

#[test]
fn model_with_deviations_matches_the_product() {
    let mut differing = Vec::new();
    for (seed, line) in (0..).zip(recorded()).step_by(STRIDE) {
        let mut case: Value = serde_json::from_str(&line).unwrap();
        let changes = mutate(&mut case, &mut SeededRng::new(seed));
        let case = Case::parse(&to_go_string(&case)).unwrap();
        let product = crate::sync::outcome(&case).unwrap();
        let modelled = run(&case, Rules::PRODUCT).unwrap();
        if let Some(text) = differences(&case, &modelled, &product) {
            differing.push(format!("{changes:?} {text}"));
        }
    }
    let count = differing.len();
    assert_eq!(count, 0, "{count} differ\n{}", differing.join("\n"));
}
