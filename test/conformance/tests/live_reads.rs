//! Tests of failing live reads: no claim gets an owner, and no pod is repaired or deleted with its
//! claims. `conformance sync` derives these cases from every recorded one, these tests from a
//! sample.

use std::path::PathBuf;

use conformance::files::lines;
use conformance::model::{Rules, run};
use conformance::outcome::Outcome;
use conformance::sync::{live_read, outcome};
use conformance::sync_case::{Case, LiveReadFault};
use serde_json::Value;
use statefulset_client::fake::CallError;
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS};

/// One in this many cases is run. A prime, to avoid patterns in the recordings.
const STRIDE: usize = 5;

fn recorded() -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/sync.jsonl.gz");
    lines(&path).expect("the vectors can be read")
}

/// Owners of every claim, at the start of the case.
fn owners_before(case: &Case) -> Vec<(String, Vec<Value>)> {
    let mut claims = Vec::new();
    for object in &case.objects {
        let object: Value = serde_json::from_str(object.get()).expect("an object is JSON");
        if object["kind"] == "PersistentVolumeClaim" {
            let name = object["metadata"]["name"]
                .as_str()
                .expect("an object has a name");
            claims.push((format!("PersistentVolumeClaim/{name}"), owners(&object)));
        }
    }
    claims
}

fn owners(claim: &Value) -> Vec<Value> {
    let owners = claim["metadata"]["ownerReferences"].as_array();
    let uid = |owner: &Value| owner["uid"].clone();
    owners.into_iter().flatten().map(uid).collect()
}

/// Condemned pods that are deleted with their claims.
fn condemned_with_claims(case: &Case) -> Vec<String> {
    let set = case.set().expect("a case has a set");
    let spec = &set["spec"];
    let has_claims = spec["volumeClaimTemplates"]
        .as_array()
        .is_some_and(|it| !it.is_empty());
    if !has_claims || spec["persistentVolumeClaimRetentionPolicy"]["whenScaled"] != "Delete" {
        return Vec::new();
    }
    let start = spec["ordinals"]["start"].as_i64().unwrap_or(0);
    let wanted = start..start + spec["replicas"].as_i64().unwrap_or(1);
    let pods = case.objects.iter().filter_map(|object| {
        let object: Value = serde_json::from_str(object.get()).expect("an object is JSON");
        let name = object["metadata"]["name"].as_str()?.to_owned();
        let ordinal: i64 = name.rsplit_once('-')?.1.parse().ok()?;
        let is_condemned = object["kind"] == "Pod" && !wanted.contains(&ordinal);
        is_condemned.then(|| format!("Pod/{name}"))
    });
    pods.collect()
}

/// Writes that require a live read before them.
fn forbidden_writes(case: &Case, outcome: &Outcome) -> Vec<String> {
    let mut writes = Vec::new();
    for (claim, before) in owners_before(case) {
        let after = outcome.objects.get(&claim).map(owners).unwrap_or_default();
        if after.iter().any(|uid| !before.contains(uid)) {
            writes.push(format!("an owner of {claim}"));
        }
    }
    for pod in condemned_with_claims(case) {
        if !outcome.objects.contains_key(&pod) {
            writes.push(format!("the end of {pod}"));
        }
    }
    writes
}

#[test]
fn failed_live_read_lets_no_claim_be_deleted() {
    let mut prevented = 0;
    for line in recorded().iter().step_by(STRIDE) {
        let mut case = Case::parse(line).unwrap();
        let writes = forbidden_writes(&case, &outcome(&case).unwrap());
        for error in live_read::FAILURES {
            let resource = STATEFUL_SETS.plural;
            let fault = LiveReadFault { resource, error };
            let actual = live_read::actual(&mut case, fault).unwrap();
            assert_eq!(forbidden_writes(&case, &actual), [""; 0], "{}", case.id);
            if !writes.is_empty() {
                assert!(actual.failed, "{}: {writes:?}", case.id);
            }
        }
        prevented += usize::from(!writes.is_empty());
    }
    assert!(
        prevented > 20,
        "only {prevented} cases let a claim be deleted"
    );
}

/// Returns true if an object of this resource was updated.
fn updates(outcome: &Outcome, resource: &str) -> bool {
    let start = format!("update {resource} ");
    let mut requests = outcome.requests.iter();
    requests.any(|request| {
        let text = request["request"].as_str();
        text.is_some_and(|text| text.starts_with(&start))
    })
}

#[test]
fn failed_live_read_prevents_updates() {
    for resource in [PODS.plural, PERSISTENT_VOLUME_CLAIMS.plural] {
        let mut prevented = 0;
        for line in recorded().iter().step_by(STRIDE) {
            let mut case = Case::parse(line).unwrap();
            let undisturbed = run(&case, Rules::PRODUCT).unwrap();
            if !updates(&undisturbed, resource) {
                continue;
            }
            prevented += 1;
            for error in live_read::FAILURES {
                let fault = LiveReadFault { resource, error };
                let expected = live_read::expected(&mut case, fault).unwrap();
                let actual = live_read::actual(&mut case, fault).unwrap();
                let differing = live_read::differing(fault, &expected, &actual);
                assert_eq!(differing, [""; 0], "{}", case.id);
                assert!(!updates(&actual, resource), "{}", case.id);
                // A claim that is gone needs no release, so its sync may succeed.
                let is_gone =
                    error == CallError::NotFound && resource == PERSISTENT_VOLUME_CLAIMS.plural;
                assert!(actual.failed || is_gone, "{}", case.id);
            }
        }
        assert!(prevented > 20, "only {prevented} cases update {resource}");
    }
}
