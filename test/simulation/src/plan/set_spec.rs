//! StatefulSets of a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The update mode of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpdateMode {
    /// Replaces them one after another.
    #[default]
    RollingUpdate,
    /// Replaces those that users delete.
    OnDelete,
}

/// The retention of claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retain {
    /// They are kept.
    #[default]
    Retain,
    /// They are deleted.
    Delete,
}

/// Retention of claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimRetention {
    /// At the deletion of the set.
    pub when_deleted: Retain,
    /// At a scale-down of the set.
    pub when_scaled: Retain,
}

impl ClaimRetention {
    /// Claims are deleted with the set and when it is scaled down.
    pub const DELETE: Self = Self {
        when_deleted: Retain::Delete,
        when_scaled: Retain::Delete,
    };
}

/// The maximum of unavailable pods during an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MaxUnavailable {
    /// A number of pods.
    Pods(u32),
    /// A percentage of the replicas, such as `30%`.
    Percent(String),
}

/// The treatment of a deleted set's dependents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cascade {
    /// They are deleted after the set.
    #[default]
    Background,
    /// They are deleted before the set.
    Foreground,
    /// They are kept.
    Orphan,
}

/// A StatefulSet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SetSpec {
    /// Its name.
    pub name: String,
    /// The image of its pods. Those that begin with `bad` never become ready until the end of all
    /// faults, those that begin with `dead` never at all. With `-pull` they can't be pulled, with
    /// `-crash` they crash.
    pub image: String,
    /// Number of pods.
    pub replicas: u32,
    /// True if pods are created and deleted in parallel.
    pub parallel: bool,
    /// The update mode.
    pub update: UpdateMode,
    /// Number of pods, from the lowest ordinal, that keep the old revision.
    pub partition: Option<u32>,
    /// The maximum of unavailable pods.
    pub max_unavailable: Option<MaxUnavailable>,
    /// Seconds for which a ready pod must stay ready to be available.
    pub min_ready_seconds: u32,
    /// Number of claim templates.
    pub claims: u32,
    /// Storage class of the claims; none for that of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Retention of claims.
    pub retention: ClaimRetention,
    /// The first ordinal.
    pub start: u32,
    /// Number of old revisions to keep.
    pub history: Option<u32>,
    /// Seconds that pods get to stop.
    pub grace: u32,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Default for SetSpec {
    fn default() -> Self {
        Self {
            name: "web".to_owned(),
            image: "a".to_owned(),
            replicas: 3,
            parallel: false,
            update: UpdateMode::default(),
            partition: None,
            max_unavailable: None,
            min_ready_seconds: 0,
            claims: 0,
            class: None,
            retention: ClaimRetention::default(),
            start: 0,
            history: None,
            grace: 10,
            annotations: BTreeMap::new(),
        }
    }
}

impl SetSpec {
    /// Returns the object that a user creates.
    pub fn manifest(&self) -> Value {
        let labels = json!({"app": self.name});
        let mounts: Vec<Value> = (0..self.claims)
            .map(|nth| json!({"name": format!("data{nth}"), "mountPath": format!("/data{nth}")}))
            .collect();
        let claims: Vec<Value> = (0..self.claims)
            .map(|nth| {
                let mut spec = json!({
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                });
                if let Some(class) = &self.class {
                    spec["storageClassName"] = json!(class);
                }
                json!({"metadata": {"name": format!("data{nth}")}, "spec": spec})
            })
            .collect();
        let mut strategy = json!({"type": self.update});
        if self.update == UpdateMode::RollingUpdate {
            let mut rolling = json!({"partition": self.partition.unwrap_or(0)});
            if let Some(max) = &self.max_unavailable {
                rolling["maxUnavailable"] = json!(max);
            }
            strategy["rollingUpdate"] = rolling;
        }
        let mut metadata = json!({"name": self.name, "labels": labels});
        if !self.annotations.is_empty() {
            metadata["annotations"] = json!(self.annotations);
        }
        json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": metadata,
            "spec": {
                "replicas": self.replicas,
                "serviceName": self.name,
                "podManagementPolicy": if self.parallel { "Parallel" } else { "OrderedReady" },
                "selector": {"matchLabels": labels},
                "updateStrategy": strategy,
                "minReadySeconds": self.min_ready_seconds,
                "revisionHistoryLimit": self.history.unwrap_or(10),
                "ordinals": {"start": self.start},
                "persistentVolumeClaimRetentionPolicy": self.retention,
                "volumeClaimTemplates": claims,
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "terminationGracePeriodSeconds": self.grace,
                        "containers": [{
                            "name": "main",
                            "image": self.image,
                            "volumeMounts": mounts,
                        }],
                    },
                },
            },
        })
    }
}
