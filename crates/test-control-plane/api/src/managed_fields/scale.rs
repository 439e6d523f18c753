//! The managers of a scale: those object managers that own the number of replicas.
//!
//! Upstream: `scalehandler.go` of `k8s.io/apimachinery`.

use serde_json::Value;

use super::managers::{Fields, Managed};
use super::path::PathElement;
use super::set::Set;
use crate::kinds::{Kind, SCALE};

/// The path of the desired replicas in a scale and in built-in objects.
const REPLICAS: &str = ".spec.replicas";

/// Returns the path of the desired replicas in objects of a kind.
fn replicas(kind: &Kind) -> Vec<PathElement> {
    let path = kind.scale().map_or(REPLICAS, |scale| &scale.spec);
    path.split('.').skip(1).map(PathElement::field).collect()
}

fn only(path: &[PathElement], api_version: String, applied: bool) -> Fields {
    let mut set = Set::EMPTY;
    set.insert(path);
    Fields {
        set,
        api_version,
        applied,
    }
}

/// Returns the managers of a scale, given the managers `parent` of its object of `kind`.
pub fn to_subresource(kind: &Kind, parent: Option<&Value>) -> Value {
    let parent = Managed::decode(parent).unwrap_or_default();
    let version = kind.api_version();
    let (own, in_scale) = (replicas(kind), replicas(&SCALE));
    let mut scale = Managed::default();
    for (id, fields) in &parent.fields {
        if fields.api_version == version && fields.set.has(&own) {
            let owned = only(&in_scale, SCALE.api_version(), fields.applied);
            scale.fields.insert(id.clone(), owned);
            if let Some(time) = parent.times.get(id) {
                scale.times.insert(id.clone(), time.clone());
            }
        }
    }
    scale.encode()
}

/// Returns the new managers of an object of `kind` after a write to its scale. `parent` holds its
/// previous managers, `scale` the scale's managers after the write.
pub fn to_parent(kind: &Kind, parent: Option<&Value>, scale: Option<&Value>) -> Value {
    let parent = Managed::decode(parent).unwrap_or_default();
    let mut scale = Managed::decode(scale).unwrap_or_default().fields;
    let version = kind.api_version();
    let (own, in_scale) = (replicas(kind), replicas(&SCALE));
    let mut managed = Managed::default();
    for (id, mut fields) in parent.fields {
        if fields.api_version != version {
            continue;
        }
        if fields.set.has(&own) && scale.remove(&id).is_none() {
            let replicas = only(&own, String::new(), false).set;
            fields.set = fields.set.difference(&replicas);
        }
        if !fields.set.is_empty() {
            if let Some(time) = parent.times.get(&id) {
                managed.times.insert(id.clone(), time.clone());
            }
            managed.fields.insert(id, fields);
        }
    }
    for (id, fields) in scale {
        if fields.set.has(&in_scale) {
            // Upstream looks the time up among the object's managers, which rarely have it.
            if let Some(time) = parent.times.get(&id) {
                managed.times.insert(id.clone(), time.clone());
            }
            let owned = only(&own, version.clone(), fields.applied);
            managed.fields.insert(id, owned);
        }
    }
    managed.encode()
}
