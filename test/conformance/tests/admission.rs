//! Recorded cases about admission, and those that the embedded API server does not pass yet.

#![expect(clippy::unwrap_used, reason = "tests and their helpers may panic")]

use std::path::PathBuf;

use conformance::apiserver::{self, Against, Case};
use conformance::files;
use conformance::report::Verdict;

/// The cases that fail. The list can only shrink.
const FAILING: &[&str] = &["wh-conversion", "wh-conversion-errors"];

fn cases() -> Vec<Case> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/admission.json.gz");
    files::list(&path, "cases").unwrap()
}

fn text_of(verdict: &Verdict) -> String {
    format!("{}: {}", verdict.id, verdict.differences.join("\n  "))
}

#[test]
fn admission_matches_the_recordings_except_for_listed_cases() {
    let report = apiserver::run_cases(&cases(), &Against::Embedded).unwrap();
    let mut failing = FAILING.to_vec();
    let is_listed = |verdict: &&Verdict| FAILING.contains(&verdict.id.as_str());
    let unlisted: Vec<String> = report
        .failed
        .iter()
        .filter(|verdict| !is_listed(verdict))
        .map(text_of)
        .collect();
    assert!(unlisted.is_empty(), "{}", unlisted.join("\n"));
    failing.retain(|id| report.failed.iter().all(|verdict| verdict.id != *id));
    assert!(
        failing.is_empty(),
        "take these passed cases off the list: {failing:?}"
    );
    assert_eq!(report.passed + FAILING.len(), 124);
}
