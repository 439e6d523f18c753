//! Test of the embedded API server with recorded writes of single objects.

use std::path::PathBuf;

use conformance::objects::{self, Category};

/// Number of cases that pass. It may only grow.
const PASSED: usize = 7848;

#[test]
fn objects_are_validated_defaulted_and_pruned_as_recorded() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/objects.jsonl.gz");
    let cases = objects::read(&[file]).unwrap();
    let report = objects::run_cases(&cases, &|| {}).unwrap();
    assert_eq!(report.passed + report.failed.len(), 7853);
    assert_eq!(report.passed, PASSED, "{:#?}", report.categories);
    let refused = report.categories.get(Category::WronglyRefused.name());
    assert_eq!(refused, None);
}
