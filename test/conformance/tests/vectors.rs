//! Tests of the runners with this repository's recorded vectors.

use std::path::PathBuf;

use conformance::files::lines;
use conformance::report::{Report, Verdict};
use conformance::settled::shapes::{Shape, items, with_null_creation_time};
use conformance::{revisions, settled, sync};
use kube_apimachinery::json::to_go_string;
use serde_json::{Value, json};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::feature_gates::KubeVersion;

fn run(file: &str, runner: fn(&str) -> anyhow::Result<Verdict>) -> Report {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../vectors")
        .join(file);
    Report::of(&[path], runner).expect("the vectors can be read")
}

fn assert_all_pass(report: &Report, count: usize) {
    let failed: Vec<String> = report
        .failed
        .iter()
        .map(|verdict| format!("{}: {}", verdict.id, verdict.differences.join("; ")))
        .collect();
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert_eq!(report.passed, count);
}

#[test]
fn revisions_pods_and_claims_match_the_reference() {
    let report = run("revisions.jsonl.gz", revisions::run);
    assert_all_pass(&report, 300);
    assert!(report.deviations.is_empty());
}

/// Every second recorded sync, with the cases derived from it.
fn assert_syncs_pass(first: usize, count: usize) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/sync.jsonl.gz");
    let recorded = lines(&path).expect("the vectors can be read");
    let mut passed = 0;
    for line in recorded.iter().skip(first).step_by(2) {
        let verdict = sync::run(line).expect("the line is a case");
        assert_eq!(verdict.differences, [""; 0], "{}", verdict.id);
        passed += 1;
    }
    assert_eq!(passed, count);
}

#[test]
fn recorded_syncs_match_the_reference_part_1() {
    assert_syncs_pass(0, 884);
}

#[test]
fn recorded_syncs_match_the_reference_part_2() {
    assert_syncs_pass(1, 883);
}

#[test]
fn settled_clusters_cause_no_write() {
    let report = run("settled.jsonl.gz", settled::run);
    assert_all_pass(&report, 18);
    assert!(report.deviations.is_empty());
}

#[test]
fn new_member_in_a_settled_template_causes_no_write() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/settled.jsonl.gz");
    for line in lines(&path).unwrap() {
        for appearance in [
            r#""template":{"madeUpIn2030":{"a":1},"#,
            r#""template":{"spec2":"x","#,
        ] {
            let altered = line.replace(
                r#""template":{"metadata""#,
                &format!("{appearance}\"metadata\""),
            );
            assert_ne!(altered, line);
            // Revisions have sorted keys and stay as recorded.
            assert!(altered.contains(r#""template":{"$patch""#));
            let verdict = settled::run(&altered).unwrap();
            assert!(
                verdict.differences.is_empty(),
                "{}: {:?}",
                verdict.id,
                verdict.differences
            );
        }
    }
}

/// Runs the settled clusters after a change to each, as v1.33 to v1.36.
fn assert_settled_after(change: impl Fn(&mut Value)) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/settled.jsonl.gz");
    for line in lines(&path).expect("the vectors can be read") {
        let mut cluster: Value = serde_json::from_str(&line).expect("a line is a cluster");
        change(&mut cluster);
        let cluster = to_go_string(&cluster);
        for minor in 33..=36 {
            let gates = FeatureGates::at(KubeVersion::v1(minor));
            let verdict = settled::run_with(&cluster, gates).expect("it is still a cluster");
            let (id, differences) = (verdict.id, verdict.differences);
            assert!(differences.is_empty(), "{id} as 1.{minor}: {differences:?}");
        }
    }
}

#[test]
fn settled_clusters_of_other_versions_cause_no_write() {
    for shape in Shape::ALL {
        assert_settled_after(|cluster| shape.apply(cluster).unwrap());
    }
}

/// Response of a v1.33 server: null for every unset creation time.
fn as_v1_33_serves(cluster: &mut Value) {
    for set in items(cluster, "statefulsets") {
        with_null_creation_time(&mut set["spec"]["template"]);
        let claims = set["spec"].get_mut("volumeClaimTemplates");
        for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
            claim["metadata"]["creationTimestamp"] = json!(null);
        }
    }
}

#[test]
fn settled_clusters_of_a_v1_33_server_cause_no_write() {
    for shape in [Shape::V1_33, Shape::AsRecorded] {
        assert_settled_after(|cluster| {
            shape.apply(cluster).unwrap();
            as_v1_33_serves(cluster);
        });
    }
}

#[test]
fn changed_member_in_a_settled_template_is_detected() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/settled.jsonl.gz");
    for line in lines(&path).unwrap() {
        // The sets come first; the revisions after them stay as recorded.
        let (sets, rest) = line.split_once(r#""controllerrevisions""#).unwrap();
        let sets = sets.replace(r#""dnsPolicy":"ClusterFirst""#, r#""dnsPolicy":"Default""#);
        let altered = format!(r#"{sets}"controllerrevisions"{rest}"#);
        let verdict = settled::run(&altered).unwrap();
        assert!(!verdict.differences.is_empty(), "{}", verdict.id);
    }
}
