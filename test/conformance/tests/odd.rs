//! Recorded odd objects, through the runner.

use std::path::PathBuf;

use conformance::odd;
use conformance::odd::server_side::DIGEST_ONLY;

#[test]
fn embedded_server_stores_odd_objects_as_recorded() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/odd-objects.jsonl.gz");
    let report = odd::run_server_side(&[file]).unwrap();
    let wrong: Vec<String> = report
        .failed
        .iter()
        .map(|verdict| format!("{}: {}", verdict.id, verdict.differences.join("\n  ")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(report.categories.is_empty(), "{:?}", report.categories);
    assert_eq!(report.passed, 423);
    assert_eq!(Vec::from_iter(report.left_out), [(DIGEST_ONLY, 6)]);
}
