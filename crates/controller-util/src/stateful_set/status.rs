//! Set status: the controller's counts, and conditions.

use jiff::Timestamp;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::conditions::{Conditions, RecreateProgress};
use crate::decode::or_default;

/// The status of a set.
///
/// Serializes like Go: `replicas` and `availableReplicas` always, zero and empty fields never,
/// `collisionCount` if set. Of the fields that the controller doesn't compute, only the conditions
/// are kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetStatus {
    /// Generation that this status describes.
    #[serde(deserialize_with = "or_default")]
    pub observed_generation: i64,
    /// Number of existing pods.
    #[serde(deserialize_with = "or_default")]
    pub replicas: i32,
    /// Number of running and ready pods.
    #[serde(deserialize_with = "or_default")]
    pub ready_replicas: i32,
    /// Number of pods of the current revision.
    #[serde(deserialize_with = "or_default")]
    pub current_replicas: i32,
    /// Number of pods of the update revision.
    #[serde(deserialize_with = "or_default")]
    pub updated_replicas: i32,
    /// Number of pods that have been ready for `minReadySeconds`.
    #[serde(deserialize_with = "or_default")]
    pub available_replicas: i32,
    /// Name of the revision for pods below the partition.
    #[serde(deserialize_with = "or_default")]
    pub current_revision: Box<str>,
    /// Name of the revision that pods are updated to.
    #[serde(deserialize_with = "or_default")]
    pub update_revision: Box<str>,
    /// Number of revision name collisions.
    pub collision_count: Option<i32>,
    /// Conditions of other controllers, and the controller's own one under `Recreate`.
    pub conditions: Option<Conditions>,
}

impl StatefulSetStatus {
    /// Records the progress of an update under the strategy `Recreate` as a condition.
    pub fn report(&mut self, progress: RecreateProgress, now: Timestamp) {
        let conditions = Conditions::with_progress(self.conditions.as_ref(), progress, now);
        self.conditions = Some(conditions);
    }
}

impl Serialize for StatefulSetStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.observed_generation != 0 {
            map.serialize_entry("observedGeneration", &self.observed_generation)?;
        }
        map.serialize_entry("replicas", &self.replicas)?;
        for (name, count) in [
            ("readyReplicas", self.ready_replicas),
            ("currentReplicas", self.current_replicas),
            ("updatedReplicas", self.updated_replicas),
        ] {
            if count != 0 {
                map.serialize_entry(name, &count)?;
            }
        }
        for (name, revision) in [
            ("currentRevision", &self.current_revision),
            ("updateRevision", &self.update_revision),
        ] {
            if !revision.is_empty() {
                map.serialize_entry(name, revision)?;
            }
        }
        if let Some(count) = self.collision_count {
            map.serialize_entry("collisionCount", &count)?;
        }
        map.serialize_entry("availableReplicas", &self.available_replicas)?;
        if let Some(conditions) = &self.conditions {
            map.serialize_entry("conditions", conditions)?;
        }
        map.end()
    }
}
