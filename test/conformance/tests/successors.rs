//! Test of foreign pods with the names of pods that upstream deletes: they survive the sync.
//! `conformance sync` derives these cases from every recorded one, this test from a sample.

use std::path::PathBuf;

use conformance::files::lines;
use conformance::model::{Rules, run};
use conformance::sync::{outcome, successor};
use conformance::sync_case::Case;
use serde_json::Value;

/// One in this many cases is run. A prime, to avoid patterns in the recordings.
const STRIDE: usize = 7;

#[test]
fn foreign_pod_survives_a_deletion_of_its_name() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/sync.jsonl.gz");
    let mut count = 0;
    for line in lines(&path).unwrap().iter().step_by(STRIDE) {
        let mut case = Case::parse(line).unwrap();
        let successors = successor::successors(&case).unwrap();
        if successors.is_empty() {
            continue;
        }
        let differences = successor::differences(&mut case).unwrap();
        assert_eq!(differences, [""; 0], "{}", case.id);

        // Upstream deletes each of them; here all survive.
        case.live_pods = successors;
        let reference = run(&case, Rules::UPSTREAM).unwrap();
        let actual = outcome(&case).unwrap();
        for pod in &case.live_pods {
            let pod: Value = serde_json::from_str(pod.get()).unwrap();
            let key = format!("Pod/{}", pod["metadata"]["name"].as_str().unwrap());
            assert!(!reference.objects.contains_key(&key), "{}: {key}", case.id);
            let uid = &actual.objects[&key]["metadata"]["uid"];
            assert_eq!(*uid, pod["metadata"]["uid"], "{}: {key}", case.id);
        }
        assert!(actual.failed, "{}", case.id);
        let is_refused = |event: &String| event.contains("Precondition failed");
        count += usize::from(actual.events.iter().any(is_refused));
    }
    assert!(count > 20, "only {count} deletions are refused");
}
