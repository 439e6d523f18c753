//! What a sync left behind, in the form in which it is compared.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The comparable outcome of one sync.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether the sync failed.
    pub failed: bool,
    /// The delayed add, as Go prints a duration.
    pub requeue_after: Option<String>,
    /// `Type Reason Message`, in order; sorted where the order doesn't count.
    pub events: Vec<String>,
    /// What was asked of the API, in order; sorted where the order doesn't count.
    pub requests: Vec<Value>,
    /// Every object that the API then holds, by kind and name: of sets the status alone, of
    /// revisions the data as text.
    pub objects: BTreeMap<String, Value>,
}

impl Outcome {
    /// The outcome as one JSON value, to be compared.
    pub fn to_value(&self) -> Value {
        json!({
            "failed": self.failed,
            "requeueAfter": self.requeue_after,
            "events": self.events,
            "requests": self.requests,
            "final": self.objects,
        })
    }
}

/// Which volumes of a pod come from claim templates; their order doesn't count.
pub struct ClaimVolumes(pub Vec<String>);

/// An object in the form in which it is compared, with its key.
///
/// # Errors
///
/// The text is no JSON object.
pub fn comparable(text: &str, claims: &ClaimVolumes) -> serde_json::Result<(String, Value)> {
    let mut object: Value = serde_json::from_str(text)?;
    let kind = object["kind"].as_str().unwrap_or("").to_owned();
    let key = format!(
        "{kind}/{}",
        object["metadata"]["name"].as_str().unwrap_or("")
    );
    match kind.as_str() {
        "StatefulSet" => return Ok((key, object["status"].take())),
        "ControllerRevision" => object["data"] = raw_data(text)?,
        "Pod" => sort_claim_volumes(&mut object, claims),
        _ => {}
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    Ok((key, object))
}

/// A revision's data as the text that is stored.
fn raw_data(text: &str) -> serde_json::Result<Value> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
    Ok(members
        .get("data")
        .map_or(Value::Null, |data| Value::from(data.get())))
}

/// Puts the volumes that come from claim templates into the order of their names, each in a place
/// where one of them was.
fn sort_claim_volumes(pod: &mut Value, claims: &ClaimVolumes) {
    let Some(Value::Array(volumes)) = pod.pointer_mut("/spec/volumes") else {
        return;
    };
    let name = |volume: &Value| volume["name"].as_str().unwrap_or("").to_owned();
    let places: Vec<usize> = (0..volumes.len())
        .filter(|&index| claims.0.contains(&name(&volumes[index])))
        .collect();
    let mut sorted: Vec<Value> = places.iter().map(|&index| volumes[index].take()).collect();
    sorted.sort_by_key(name);
    for (index, volume) in places.into_iter().zip(sorted) {
        volumes[index] = volume;
    }
}
