//! Test of the embedded API server with recorded writes of single objects.

use std::path::PathBuf;

use conformance::objects::{self, Category};

/// Number of cases that pass. It may only grow.
const PASSED: usize = 7852;

fn vectors(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../vectors")
        .join(name)
}

#[test]
fn objects_are_validated_defaulted_and_pruned_as_recorded() {
    let cases = objects::read(&[vectors("objects.jsonl.gz")]).unwrap();
    let report = objects::run_cases(&cases, &|| {}).unwrap();
    assert_eq!(report.passed + report.failed.len(), 7853);
    assert_eq!(report.passed, PASSED, "{:#?}", report.categories);
    let refused = report.categories.get(Category::WronglyRefused.name());
    assert_eq!(refused, None);
}

#[test]
fn random_writes_are_treated_as_recorded() {
    let cases = objects::read(&[vectors("random-writes.jsonl.gz")]).unwrap();
    let report = objects::run_cases(&cases, &|| {}).unwrap();
    assert_eq!(report.passed + report.failed.len(), 5972);
    assert_eq!(report.passed, 5971, "{:#?}", report.categories);
}

#[test]
fn kinds_of_operators_behave_as_recorded() {
    let cases = objects::read(&[vectors("kinds.jsonl.gz")]).unwrap();
    let report = objects::run_cases(&cases, &|| {}).unwrap();
    assert_eq!(report.passed, 3200, "{:#?}", report.categories);
    assert!(report.failed.is_empty());
}

#[test]
fn revisions_of_created_sets_have_the_recorded_names() {
    let report = objects::run_revision_names(&[vectors("revision-names.jsonl.gz")]).unwrap();
    assert_eq!(report.passed, 1426, "{:#?}", report.failed);
    assert!(report.failed.is_empty());
}
