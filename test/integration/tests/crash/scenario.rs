//! Scenarios: the initial state and the user's action.

use integration::{NodeCluster, manifests};
use serde_json::{Value, json};
use statefulset_client::resource::STATEFUL_SETS;

/// Action of a user on the set `web`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Creates the set.
    OrderedCreation,
    /// Creates the set with parallel pod management.
    ParallelCreation,
    /// Changes the image.
    Rollout,
    /// Removes 2 of 4 pods, with their claims.
    ScaleDown,
    /// The same with parallel pod management.
    ParallelScaleDown,
    /// Recreates the set over the orphans of an earlier one.
    Adoption,
    /// Goes back to the previous image.
    Rollback,
    /// Sets a third image with a history limit of one.
    Truncation,
    /// Sets claims to be deleted with the set.
    RetentionPolicy,
}

impl Scenario {
    /// Manifest of the set.
    fn set(self) -> Value {
        let replicas = match self {
            Self::ParallelCreation | Self::ScaleDown | Self::ParallelScaleDown => 4,
            Self::OrderedCreation | Self::Rollout | Self::Adoption | Self::RetentionPolicy => 3,
            Self::Rollback => 2,
            Self::Truncation => 1,
        };
        let mut set = manifests::web(replicas);
        let spec = &mut set["spec"];
        if !self.keeps_order() {
            spec["podManagementPolicy"] = json!("Parallel");
        }
        if self.deletes_claims() {
            spec["persistentVolumeClaimRetentionPolicy"] =
                json!({"whenScaled": "Delete", "whenDeleted": "Retain"});
        }
        if self == Self::Truncation {
            spec["revisionHistoryLimit"] = json!(1);
        }
        set
    }

    /// Returns true if pods are created and deleted one by one.
    pub(crate) fn keeps_order(self) -> bool {
        !matches!(self, Self::ParallelCreation | Self::ParallelScaleDown)
    }

    /// Returns true if scaling down deletes the claims too.
    pub(crate) fn deletes_claims(self) -> bool {
        matches!(self, Self::ScaleDown | Self::ParallelScaleDown)
    }

    /// Brings a cluster with a controller to the initial state.
    pub(crate) async fn prepare(self, cluster: &NodeCluster) {
        if matches!(self, Self::OrderedCreation | Self::ParallelCreation) {
            return;
        }
        cluster.create(&STATEFUL_SETS, &self.set()).await;
        cluster.settle().await;
        if matches!(self, Self::Rollback | Self::Truncation) {
            set_image(cluster, 2).await;
            cluster.settle().await;
        }
        if self == Self::Adoption {
            let orphan = json!({"propagationPolicy": "Orphan"});
            cluster.delete(&STATEFUL_SETS, "web", &orphan).await;
            cluster.settle().await;
        }
    }

    /// Performs the user's action.
    pub(crate) async fn act(self, cluster: &NodeCluster) {
        match self {
            Self::OrderedCreation | Self::ParallelCreation | Self::Adoption => {
                cluster.create(&STATEFUL_SETS, &self.set()).await;
            }
            Self::Rollout => set_image(cluster, 2).await,
            Self::Rollback => set_image(cluster, 1).await,
            Self::Truncation => set_image(cluster, 3).await,
            Self::ScaleDown | Self::ParallelScaleDown => {
                let replicas = json!({"spec": {"replicas": 2}});
                cluster.patch(&STATEFUL_SETS, "web", &replicas).await;
            }
            Self::RetentionPolicy => {
                let policy = json!({"whenScaled": "Retain", "whenDeleted": "Delete"});
                let patch = json!({"spec": {"persistentVolumeClaimRetentionPolicy": policy}});
                cluster.patch(&STATEFUL_SETS, "web", &patch).await;
            }
        }
    }
}

/// Sets the container's image to this number, and keeps its other fields.
async fn set_image(cluster: &NodeCluster, number: u32) {
    let mut spec = manifests::web(0)["spec"]["template"]["spec"].clone();
    spec["containers"][0]["image"] = format!("registry.example/web:{number}").into();
    let patch = json!({"spec": {"template": {"spec": {"containers": spec["containers"]}}}});
    cluster.patch(&STATEFUL_SETS, "web", &patch).await;
}
