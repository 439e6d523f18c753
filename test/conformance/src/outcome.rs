//! Outcome of a sync, in comparable form.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The comparable outcome of one sync.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// True if the sync failed.
    pub failed: bool,
    /// Delayed requeue, in Go's format of durations.
    pub requeue_after: Option<String>,
    /// Events as `Type Reason Message`, in order; sorted if the order is undefined.
    pub events: Vec<String>,
    /// API requests, in order; sorted if the order is undefined.
    pub requests: Vec<Value>,
    /// All objects in the API afterwards, by kind and name: only the status of sets, and the data
    /// of revisions as text.
    pub objects: BTreeMap<String, Value>,
}

impl Outcome {
    /// The outcome as one JSON value, for comparison.
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

/// Pod volumes from claim templates; their order is ignored.
pub struct ClaimVolumes(pub Vec<String>);

/// An object in comparable form, with its key.
///
/// # Errors
///
/// The text is not a JSON object.
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

/// Revision data as the stored text.
fn raw_data(text: &str) -> serde_json::Result<Value> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
    Ok(members
        .get("data")
        .map_or(Value::Null, |data| Value::from(data.get())))
}

/// Sorts the volumes from claim templates by name, within their positions.
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
