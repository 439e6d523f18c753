//! Tests of the runner with recorded odd objects.

#![expect(clippy::unwrap_used, reason = "tests and their helpers may panic")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use conformance::odd;
use conformance::odd::server_side::DIGEST_ONLY;
use conformance::report::Report;

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/odd-objects.jsonl.gz")
}

fn wrong(report: &Report) -> Vec<String> {
    let failed = report.failed.iter();
    failed
        .map(|verdict| format!("{}: {}", verdict.id, verdict.differences.join("; ")))
        .collect()
}

/// Serves one part of the cases to the controller; checks the number of passed cases, in total and
/// by rule.
fn serve(part: usize, passed: usize, rules: &[(&str, usize)]) {
    let cases = odd::read(&[file()]).unwrap();
    let part = cases.iter().skip(part).step_by(PARTS);
    let report = odd::serve_to_controller(part);
    assert_eq!(wrong(&report), [""; 0]);
    assert_eq!(report.passed, passed);
    assert_eq!(
        report.deviations,
        rules.iter().copied().collect::<BTreeMap<_, _>>()
    );
}

/// Number of parts, so that the cases run in parallel.
const PARTS: usize = 4;

#[test]
fn controller_survives_odd_objects_part_1() {
    serve(
        0,
        78,
        &[
            ("ordinal-past-int32", 1),
            ("revision-data-beyond-template", 1),
        ],
    );
}

#[test]
fn controller_survives_odd_objects_part_2() {
    serve(1, 83, &[("empty-pod-phase", 1), ("record-cut-at-work", 1)]);
}

#[test]
fn controller_survives_odd_objects_part_3() {
    serve(2, 86, &[]);
}

#[test]
fn controller_survives_odd_objects_part_4() {
    serve(
        3,
        80,
        &[
            ("empty-pod-phase", 1),
            ("non-canonical-names", 1),
            ("record-cut-at-work", 1),
            ("spacing-in-revision-data", 1),
            ("years-out-of-range", 1),
        ],
    );
}

#[test]
fn embedded_server_stores_odd_objects_as_recorded() {
    let report = odd::run_server_side(&[file()]).unwrap();
    assert_eq!(wrong(&report), [""; 0]);
    assert!(report.categories.is_empty(), "{:?}", report.categories);
    assert_eq!(report.passed, 423);
    assert_eq!(Vec::from_iter(report.left_out), [(DIGEST_ONLY, 6)]);
}
