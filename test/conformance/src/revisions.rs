//! Cases of revision data: recorded data of a set, and the objects built from it.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use statefulset_client::cache::indexer::CachedObject;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_history::{
    NewRevision, RevisionData, controller_revision_name, hash_controller_revision,
};
use statefulset_pod_control::stateful_set_utils::persistent_volume_claims;
use statefulset_pod_control::{NewPod, Ordinal};

use crate::diff::diff;
use crate::report::Verdict;

#[derive(Deserialize)]
struct Case<'a> {
    id: String,
    #[serde(borrow)]
    set: &'a RawValue,
    expect: Expect,
}

#[derive(Deserialize)]
struct Expect {
    patch: String,
    hash: String,
    names: BTreeMap<String, String>,
    #[serde(default)]
    labels: Value,
    #[serde(default)]
    annotations: Value,
    pod0: Value,
    #[serde(default)]
    claims0: Value,
}

/// Runs one case.
///
/// # Errors
///
/// The line is not a case of this format.
pub fn run(line: &str) -> anyhow::Result<Verdict> {
    let case: Case<'_> = serde_json::from_str(line).context("not a case of revision data")?;
    let set = match StatefulSet::decode(case.set.get()) {
        Ok(set) => set,
        Err(error) => return Ok(Verdict::broken(case.id, &error.into())),
    };
    let data = RevisionData::new(&set.spec.template)?;
    let new = NewRevision::new(&set, &data, 1, 0);
    let mut differences = Vec::new();
    if **data.recorded() != *case.expect.patch {
        differences.push(format!(
            "patch: expected {}, is {}",
            case.expect.patch,
            data.recorded()
        ));
    }
    let hash = hash_controller_revision(data.recorded(), Some(0));
    let mut names = BTreeMap::new();
    for probe in case.expect.names.keys() {
        let hash = match (probe.as_str(), probe.parse::<i32>()) {
            ("nil", _) => hash_controller_revision(data.recorded(), None),
            (_, Ok(probe)) => hash_controller_revision(data.recorded(), Some(probe)),
            (other, Err(_)) => bail!("{other:?} is not a collision count"),
        };
        names.insert(probe.clone(), controller_revision_name(set.name(), &hash));
    }
    let pod = NewPod::new(&set, "", Ordinal::of_index(&zero_based(&set), 0));
    let templates = set.spec.claim_templates.iter();
    let claims: BTreeMap<String, Value> = templates
        .zip(persistent_volume_claims(&set, Ordinal::from(0)))
        .map(|(template, claim)| Ok((template.name.to_string(), claim.to_value()?)))
        .collect::<anyhow::Result<_>>()?;
    let actual = json!({
        "hash": hash,
        "names": names,
        "labels": new.labels,
        "annotations": new.annotations,
        "pod0": comparable_pod(serde_json::from_str(&pod.body()?)?),
        "claims0": claims,
    });
    let or_empty = |value: Value| if value.is_null() { json!({}) } else { value };
    let expected = json!({
        "hash": case.expect.hash,
        "names": case.expect.names,
        "labels": or_empty(case.expect.labels),
        "annotations": or_empty(case.expect.annotations),
        "pod0": comparable_pod(case.expect.pod0),
        "claims0": or_empty(case.expect.claims0),
    });
    differences.extend(diff(&expected, &actual));
    Ok(Verdict {
        id: case.id,
        differences,
        deviations: Vec::new(),
    })
}

/// The set with start ordinal 0, as in the recorded pods.
fn zero_based(set: &StatefulSet) -> StatefulSet {
    let mut set = set.clone();
    set.spec.start_ordinal = 0;
    set
}

/// A pod in recorded form: without kind and revision label, volumes sorted by name.
fn comparable_pod(mut pod: Value) -> Value {
    if let Some(members) = pod.as_object_mut() {
        members.remove("kind");
        members.remove("apiVersion");
    }
    if let Some(Value::Object(labels)) = pod.pointer_mut("/metadata/labels") {
        labels.remove("controller-revision-hash");
    }
    if let Some(Value::Array(volumes)) = pod.pointer_mut("/spec/volumes") {
        volumes.sort_by_key(|volume| volume["name"].as_str().unwrap_or("").to_owned());
    }
    pod
}
