//! The check of a resized pod against its node.
//!
//! Upstream: the admission plugin `PodResizeValidator`

use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::object::{Draft, Key, Needs};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use crate::state::Reads;

/// The label with a node's operating system.
const OS: &str = "kubernetes.io/os";

/// Rejects a resize of an assigned pod that its node can't carry out.
///
/// # Errors
///
/// 403 if the node is gone, doesn't run Linux, or is too small.
pub(crate) fn admit_pod_resize(
    reads: &Reads,
    kind: &Kind,
    old: &Draft,
    new: &Draft,
) -> ApiResult<()> {
    let node = new.text("/spec/nodeName").unwrap_or_default();
    if node.is_empty() || new.metadata().generation() == old.metadata().generation() {
        return Ok(());
    }
    let forbidden = |why: &str| ApiError::forbidden(kind, new.metadata().name(), why);
    let object =
        kinds::by_storage("nodes").and_then(|kind| reads.store.get(&Key::new(kind, "", node)));
    let object = object.ok_or_else(|| forbidden(&format!("node {node:?} not found")))?;
    let system = object.labels.get(OS).unwrap_or("linux");
    if system != "linux" {
        let why =
            format!("pod resize is only supported on linux nodes, node {node:?} is {system:?}");
        return Err(with_cause(forbidden(&why), "UnsupportedPlatform"));
    }
    let room = Needs::read(object.value().pointer("/status/allocatable"));
    let needs = Needs::of(&new.value);
    let lacking = ["cpu", "memory"].into_iter().filter_map(|name| {
        let (wanted, room) = (needs.get(name), room.get(name));
        (wanted > room).then(|| format!("{name}, requested: {wanted}, allocatable: {room}"))
    });
    let lacking: Vec<String> = lacking.collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let lacking = lacking.join("; ");
    let why = format!("node didn't have enough allocatable resources: {lacking}");
    Err(with_cause(forbidden(&why), "NodeCapacity"))
}

fn with_cause(mut error: ApiError, reason: &str) -> ApiError {
    let details = error
        .details
        .get_or_insert_with(|| Value::Object(serde_json::Map::new()));
    details["causes"] = json!([{"reason": reason}]);
    error
}
