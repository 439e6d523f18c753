//! Recorded cases about admission.

#![expect(clippy::unwrap_used, reason = "tests and their helpers may panic")]

use std::path::PathBuf;

use conformance::apiserver::{self, Against, Case};
use conformance::files;
use conformance::report::Verdict;

fn cases() -> Vec<Case> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/admission.json.gz");
    files::list(&path, "cases").unwrap()
}

fn text_of(verdict: &Verdict) -> String {
    format!("{}: {}", verdict.id, verdict.differences.join("\n  "))
}

#[test]
fn admission_matches_the_recordings() {
    let report = apiserver::run_cases(&cases(), &Against::Embedded).unwrap();
    let failed: Vec<String> = report.failed.iter().map(text_of).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(report.passed, 124);
}
