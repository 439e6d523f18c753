//! The status of a set, with whatever members others have put into it.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The status of a set.
///
/// Serializes as Go does: `replicas` and `availableReplicas` always, zero and empty members not at
/// all, `collisionCount` whenever it is set. Members that the controller doesn't compute
/// (conditions, and whatever a newer API has) are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatefulSetStatus {
    /// The generation that the status speaks of.
    pub observed_generation: i64,
    /// Number of pods that exist.
    pub replicas: i32,
    /// Number of pods that run and are ready.
    pub ready_replicas: i32,
    /// Number of pods of the current revision.
    pub current_replicas: i32,
    /// Number of pods of the update revision.
    pub updated_replicas: i32,
    /// Number of pods that are ready and have been for `minReadySeconds`.
    pub available_replicas: i32,
    /// Name of the revision that pods below the partition are made from.
    pub current_revision: Box<str>,
    /// Name of the revision that pods are updated to.
    pub update_revision: Box<str>,
    /// How many times a revision's name was taken by other data.
    pub collision_count: Option<i32>,
    /// Members that the controller doesn't compute.
    pub others: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    observed_generation: Option<i64>,
    #[serde(default)]
    replicas: Option<i32>,
    #[serde(default)]
    ready_replicas: Option<i32>,
    #[serde(default)]
    current_replicas: Option<i32>,
    #[serde(default)]
    updated_replicas: Option<i32>,
    #[serde(default)]
    available_replicas: Option<i32>,
    #[serde(default)]
    current_revision: Option<Box<str>>,
    #[serde(default)]
    update_revision: Option<Box<str>>,
    #[serde(default)]
    collision_count: Option<i32>,
}

const COMPUTED: [&str; 9] = [
    "observedGeneration",
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "currentRevision",
    "updateRevision",
    "collisionCount",
];

impl<'de> Deserialize<'de> for StatefulSetStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Map::deserialize(deserializer)?;
        let computed: Map<String, Value> = COMPUTED
            .iter()
            .filter_map(|name| members.remove_entry(*name))
            .collect();
        let raw: Raw = serde_json::from_value(Value::Object(computed)).map_err(D::Error::custom)?;
        Ok(Self {
            observed_generation: raw.observed_generation.unwrap_or_default(),
            replicas: raw.replicas.unwrap_or_default(),
            ready_replicas: raw.ready_replicas.unwrap_or_default(),
            current_replicas: raw.current_replicas.unwrap_or_default(),
            updated_replicas: raw.updated_replicas.unwrap_or_default(),
            available_replicas: raw.available_replicas.unwrap_or_default(),
            current_revision: raw.current_revision.unwrap_or_default(),
            update_revision: raw.update_revision.unwrap_or_default(),
            collision_count: raw.collision_count,
            others: members,
        })
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
        for (name, value) in &self.others {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
