//! StatefulSets.

use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use statefulset_controller::opt_ins::{CLAIMS_RESIZED, OPT_INS_VALID};

use super::pod::{self, PodVolume};
use super::{Condition, Metadata};

/// A StatefulSet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Set {
    /// Metadata.
    pub metadata: Metadata,
    /// Desired state.
    pub spec: SetSpec,
    /// Status.
    pub status: SetStatus,
}

/// The desired state of a set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SetSpec {
    replicas: Option<i32>,
    /// Seconds that a pod must be ready to count as available.
    pub min_ready_seconds: i64,
    /// `OrderedReady` or `Parallel`.
    pub pod_management_policy: String,
    /// Update strategy.
    pub update_strategy: UpdateStrategy,
    ordinals: Ordinals,
    persistent_volume_claim_retention_policy: ClaimRetention,
    /// Claim templates.
    pub volume_claim_templates: Vec<ClaimTemplate>,
    template: Template,
}

/// The pod template of a set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    spec: TemplateSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TemplateSpec {
    workload_ref: Option<Value>,
    volumes: Vec<PodVolume>,
}

impl SetSpec {
    /// The existing claims that the template mounts.
    pub fn mounted_claims(&self) -> impl Iterator<Item = &str> {
        pod::claims(&self.template.spec.volumes)
    }

    /// Reports whether the template has `workloadRef`, a field of 1.35 alone.
    pub fn has_workload_ref(&self) -> bool {
        self.template.spec.workload_ref.is_some()
    }
}

/// The update strategy of a set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// `RollingUpdate`, `OnDelete` or `Recreate`.
    #[serde(rename = "type")]
    pub kind: String,
    rolling_update: Option<RollingUpdate>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RollingUpdate {
    partition: Option<i32>,
    max_unavailable: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaimRetention {
    when_scaled: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Ordinals {
    start: i32,
}

/// A claim template.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClaimTemplate {
    /// Metadata.
    pub metadata: Metadata,
}

/// The status of a set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SetStatus {
    /// Generation that the status describes.
    pub observed_generation: i64,
    /// Pods.
    pub replicas: i32,
    /// Ready pods.
    pub ready_replicas: i32,
    /// Available pods.
    pub available_replicas: i32,
    /// Pods of the update revision.
    pub updated_replicas: i32,
    /// Revision of pods that the update hasn't reached.
    pub current_revision: String,
    /// Revision of the template.
    pub update_revision: String,
    /// Conditions.
    pub conditions: Vec<Condition>,
}

impl Set {
    /// Number of desired pods.
    pub fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    /// Desired ordinals.
    pub fn ordinals(&self) -> Range<i64> {
        let start = i64::from(self.spec.ordinals.start);
        start..start + i64::from(self.replicas().max(0))
    }

    /// The partition of a rolling update: an index from the start ordinal.
    pub fn partition(&self) -> i32 {
        let rolling = self.spec.update_strategy.rolling_update.as_ref();
        rolling.and_then(|it| it.partition).unwrap_or(0)
    }

    /// The stored `maxUnavailable`.
    pub fn max_unavailable(&self) -> Option<&Value> {
        let rolling = self.spec.update_strategy.rolling_update.as_ref();
        rolling.and_then(|it| it.max_unavailable.as_ref())
    }

    /// Reports whether pods are created and updated one by one.
    pub fn is_ordered(&self) -> bool {
        self.spec.pod_management_policy != "Parallel"
    }

    /// Reports whether claims are deleted with the pods that scaling removes.
    pub fn deletes_scaled_claims(&self) -> bool {
        self.spec
            .persistent_volume_claim_retention_policy
            .when_scaled
            == "Delete"
    }

    /// Reports whether the user deletes outdated pods.
    pub fn is_on_delete(&self) -> bool {
        self.spec.update_strategy.kind == "OnDelete"
    }

    /// Reports whether updates delete all old pods first.
    pub fn is_recreate(&self) -> bool {
        self.spec.update_strategy.kind == "Recreate"
    }

    /// The ordinal of a pod with this name.
    pub fn ordinal(&self, pod: &str) -> Option<i64> {
        let number = pod.strip_prefix(self.metadata.name.as_str())?;
        let number = number.strip_prefix('-')?;
        let is_canonical = number == "0" || !number.starts_with('0');
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        (is_canonical && is_number).then(|| number.parse().ok())?
    }

    /// Reports whether the status shows all pods available and of the update revision.
    pub fn is_settled(&self) -> bool {
        let status = &self.status;
        let counters = [
            status.replicas,
            status.ready_replicas,
            status.available_replicas,
            status.updated_replicas,
        ];
        self.metadata.deletion_timestamp.is_none()
            && status.observed_generation >= self.metadata.generation
            && counters.iter().all(|counter| *counter == self.replicas())
            && status.current_revision == status.update_revision
    }

    /// The condition about claims that don't have the sizes for which the set asks.
    pub fn lacks_claim_sizes(&self) -> Option<&Condition> {
        self.false_condition(CLAIMS_RESIZED)
    }

    /// The condition about annotations that can't be used.
    pub fn has_unusable_annotation(&self) -> Option<&Condition> {
        self.false_condition(OPT_INS_VALID)
    }

    fn false_condition(&self, kind: &str) -> Option<&Condition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|it| it.kind == kind && it.status == "False")
    }
}
