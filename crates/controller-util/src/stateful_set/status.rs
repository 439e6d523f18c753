//! The status of a set: what the controller computes, and the conditions of others.

use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::decode::or_default;

/// The status of a set.
///
/// Serializes as Go does: `replicas` and `availableReplicas` always, zero and empty members not at
/// all, `collisionCount` whenever it is set. Of the members that the controller doesn't compute,
/// the conditions alone are kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetStatus {
    /// The generation that the status speaks of.
    #[serde(deserialize_with = "or_default")]
    pub observed_generation: i64,
    /// Number of pods that exist.
    #[serde(deserialize_with = "or_default")]
    pub replicas: i32,
    /// Number of pods that run and are ready.
    #[serde(deserialize_with = "or_default")]
    pub ready_replicas: i32,
    /// Number of pods of the current revision.
    #[serde(deserialize_with = "or_default")]
    pub current_replicas: i32,
    /// Number of pods of the update revision.
    #[serde(deserialize_with = "or_default")]
    pub updated_replicas: i32,
    /// Number of pods that are ready and have been for `minReadySeconds`.
    #[serde(deserialize_with = "or_default")]
    pub available_replicas: i32,
    /// Name of the revision that pods below the partition are made from.
    #[serde(deserialize_with = "or_default")]
    pub current_revision: Box<str>,
    /// Name of the revision that pods are updated to.
    #[serde(deserialize_with = "or_default")]
    pub update_revision: Box<str>,
    /// How many times a revision's name was taken by other data.
    pub collision_count: Option<i32>,
    /// Conditions that others have set.
    pub conditions: Option<Conditions>,
}

/// The conditions of a set, as the server sent them.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions(Box<str>);

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer).map_err(D::Error::custom)?;
        Ok(Self(raw.get().into()))
    }
}

impl Serialize for Conditions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
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
