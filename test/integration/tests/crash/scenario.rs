//! Scenarios: what a user does, and what there was before.

use integration::{Cluster, manifests};
use serde_json::{Value, json};
use statefulset_client::resource::STATEFUL_SETS;

/// What a user does to the set `web`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Creates the set.
    OrderedCreation,
    /// Creates the set, whose pods come all at once.
    ParallelCreation,
    /// Gives the pods another image.
    Rollout,
    /// Takes 2 of 4 pods away, whose claims go with them.
    ScaleDown,
    /// The same where pods go all at once.
    ParallelScaleDown,
    /// Creates the set anew over the orphans of an earlier one.
    Adoption,
    /// Goes back to the image before.
    Rollback,
    /// Gives the pods a third image where one old revision is kept.
    Truncation,
    /// Has the claims go with the set from now on.
    RetentionPolicy,
}

impl Scenario {
    /// The set as it is created.
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
        if self.takes_claims_along() {
            spec["persistentVolumeClaimRetentionPolicy"] =
                json!({"whenScaled": "Delete", "whenDeleted": "Retain"});
        }
        if self == Self::Truncation {
            spec["revisionHistoryLimit"] = json!(1);
        }
        set
    }

    /// Whether pods come and go one by one.
    pub(crate) fn keeps_order(self) -> bool {
        !matches!(self, Self::ParallelCreation | Self::ParallelScaleDown)
    }

    /// Whether the claims of pods that are scaled away go with them.
    pub(crate) fn takes_claims_along(self) -> bool {
        matches!(self, Self::ScaleDown | Self::ParallelScaleDown)
    }

    /// Brings a cluster with a controller to where the scenario begins.
    pub(crate) async fn prepare(self, cluster: &Cluster) {
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

    /// Does what the user does.
    pub(crate) async fn act(self, cluster: &Cluster) {
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

/// Gives the container the image of this number, and leaves its other members.
async fn set_image(cluster: &Cluster, number: u32) {
    let mut spec = manifests::web(0)["spec"]["template"]["spec"].clone();
    spec["containers"][0]["image"] = format!("registry.example/web:{number}").into();
    let patch = json!({"spec": {"template": {"spec": {"containers": spec["containers"]}}}});
    cluster.patch(&STATEFUL_SETS, "web", &patch).await;
}
