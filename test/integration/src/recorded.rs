//! Recorded settled clusters of upstream, loaded into a server through its API. The server
//! assigns its own uids, versions, times and generations; references to uids are updated.

use std::collections::BTreeMap;
use std::path::Path;

use conformance::files::lines;
use conformance::settled::shapes::{Shape, items};
use serde_json::{Map, Value};
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};

use crate::space::Space;

/// Metadata that the server assigns, and rejects or ignores in requests.
const OF_THE_SERVER: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "namespace",
    "resourceVersion",
    "uid",
];

/// Time of everything recorded.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// Lists of a recorded cluster; each refers only to earlier ones.
const LISTS: [(&str, Resource); 4] = [
    ("statefulsets", STATEFUL_SETS),
    ("controllerrevisions", CONTROLLER_REVISIONS),
    ("pods", PODS),
    ("persistentvolumeclaims", PERSISTENT_VOLUME_CLAIMS),
];

/// A recorded cluster with one set.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Name of the set and of the action on it, such as `redis/rolled`.
    pub id: String,
    /// The lists.
    pub cluster: Value,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a test harness panics on failures"
)]
impl Recorded {
    /// Loads all recorded clusters, in this shape.
    pub fn all(shape: Shape) -> Vec<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/settled.jsonl.gz");
        let lines = lines(&path).unwrap_or_else(|error| panic!("{error:#}"));
        let shaped = |line: &String| {
            let mut cluster: Value = serde_json::from_str(line).expect("a line is a cluster");
            let applied = shape.apply(&mut cluster);
            applied.unwrap_or_else(|error| panic!("{error:#}"));
            let id = cluster["id"].as_str().expect("a cluster has an id");
            Self {
                id: id.to_owned(),
                cluster,
            }
        };
        lines.iter().map(shaped).collect()
    }

    /// A namespace name for the cluster.
    pub fn namespace(&self) -> String {
        self.id.replace('/', "-")
    }

    /// The set.
    pub fn set(&self) -> &Value {
        &self.cluster["statefulsets"]["items"][0]
    }

    /// The objects of a list.
    pub fn list(&self, list: &str) -> &[Value] {
        let items = self.cluster[list]["items"].as_array();
        items.map_or(&[], Vec::as_slice)
    }

    /// The objects of a list, mutable.
    pub fn list_mut(&mut self, list: &str) -> &mut [Value] {
        items(&mut self.cluster, list)
    }

    /// Creates all objects in a namespace.
    pub async fn load(&self, space: &Space) {
        let mut uids = BTreeMap::new();
        for (list, resource) in LISTS {
            for object in self.list(list) {
                load(space, &resource, object, &mut uids).await;
            }
        }
    }
}

/// Strips an object's server-assigned fields and status, so that it can be created.
pub fn creatable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Value::Object(members) = &mut object {
        members.remove("status");
    }
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.retain(|member, _| !OF_THE_SERVER.contains(&member.as_str()));
    }
    object
}

async fn load(
    space: &Space,
    resource: &Resource,
    recorded: &Value,
    uids: &mut BTreeMap<String, Value>,
) {
    let mut object = creatable(recorded);
    let owners = object["metadata"].get_mut("ownerReferences");
    for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(uid) = uids.get(&owner["uid"].to_string()) {
            owner["uid"] = uid.clone();
        }
    }
    let mut created = space.create(resource, &object).await;
    let name = created["metadata"]["name"].as_str().unwrap_or_default();
    let name = name.to_owned();
    let before = recorded["metadata"]["uid"].to_string();
    uids.insert(before, created["metadata"]["uid"].clone());
    if let Some(Value::Object(status)) = recorded.get("status") {
        created["status"] = seen(status, &created).into();
        age(&mut created["status"]);
        let put = space.put(resource, &name, "status", &created).await;
        put.unwrap_or_else(|refused| panic!("{refused}"));
    }
    if recorded["metadata"].get("deletionTimestamp").is_some() {
        space.delete(resource, &name, Some(0)).await;
    }
}

/// Moves all times of a status long before the test's time.
fn age(status: &mut Value) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        condition["lastTransitionTime"] = LONG_AGO.into();
    }
}

/// Returns the status with the object's current generation as observed.
fn seen(status: &Map<String, Value>, object: &Value) -> Map<String, Value> {
    let mut status = status.clone();
    if let Some(generation) = status.get_mut("observedGeneration") {
        *generation = object["metadata"]["generation"].clone();
    }
    status
}
