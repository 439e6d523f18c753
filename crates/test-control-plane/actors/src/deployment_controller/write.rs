//! The writes of the controller.

use kube_test_control_plane_api::object::Key;
use serde_json::Value;

/// A write of the controller.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    /// Creates a replica set.
    Create(Value),
    /// Patches a replica set.
    Change {
        key: Key,
        uid: Box<str>,
        patch: Value,
    },
    /// Deletes a replica set.
    Delete { key: Key, uid: Box<str> },
    /// Patches the deployment's annotations through `/status`, which leaves the generation
    /// unchanged.
    Note(Value),
    /// Patches the deployment's status.
    Status(Value),
}
