use std::path::Path;

use super::*;
use crate::diff::diff;
use crate::files::lines;

fn recorded() -> Vec<Case> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/sync.jsonl.gz");
    lines(&file)
        .unwrap()
        .iter()
        .map(|line| Case::parse(line).unwrap())
        .collect()
}

#[test]
fn without_deviations_the_model_is_the_reference_in_every_recorded_case() {
    let mut differing = Vec::new();
    for case in recorded() {
        let (expected, modelled) = (
            case.expected().unwrap(),
            run(&case, Rules::REFERENCE).unwrap(),
        );
        if expected != modelled {
            let differences = diff(&expected.to_value(), &modelled.to_value());
            differing.push(format!("{}\n{}", case.id, differences.join("\n")));
        }
    }
    assert!(
        differing.is_empty(),
        "{} differ\n{}",
        differing.len(),
        differing.join("\n")
    );
}
