//! The typed view of a set's spec.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_apimachinery::int_or_string::IntOrString;
use kube_apimachinery::selector::LabelSelector;
use serde::Deserialize;
use serde_json::value::RawValue;
use statefulset_client::cache::indexer::SharedText;

use super::claim_template::ClaimTemplate;
use super::selector::SetSelector;
use super::template::PodTemplate;
use crate::decode::or_default;

/// Replicas of a set without the field; API defaulting normally sets it.
const REPLICAS_DEFAULT: i32 = 1;
/// History limit of a set without the field; API defaulting normally sets it.
const REVISION_HISTORY_LIMIT_DEFAULT: i32 = 10;

/// Desired state of a set.
#[derive(Clone, Debug)]
pub struct StatefulSetSpec {
    /// Desired number of pods.
    pub replicas: i32,
    /// The first ordinal.
    pub start_ordinal: i32,
    /// Pod selector.
    pub selector: Arc<SetSelector>,
    /// The pod template, verbatim.
    pub template: PodTemplate,
    /// Claim templates, verbatim; of repeated names the last one.
    pub claim_templates: Arc<[ClaimTemplate]>,
    /// Name of the governing service; may be empty.
    pub service_name: Box<str>,
    /// Order of pod creation and deletion.
    pub pod_management_policy: PodManagementPolicy,
    /// Strategy for moving pods to a new revision.
    pub update_strategy: UpdateStrategy,
    /// Number of unused revisions to keep; negative keeps all.
    pub revision_history_limit: i32,
    /// Seconds that a pod must be ready to count as available.
    pub min_ready_seconds: i32,
    /// Treatment of claims when the set is scaled down or deleted.
    pub claim_retention_policy: ClaimRetentionPolicy,
}

/// Order of pod creation and deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodManagementPolicy {
    /// One pod after the other; also for unknown policies.
    #[default]
    OrderedReady,
    /// In parallel, in batches.
    Parallel,
}

/// Strategy for moving pods to a new revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateStrategy {
    /// Type of the strategy.
    pub strategy_type: UpdateStrategyType,
    /// Parameters of a rolling update; may be absent even for a rolling update.
    pub rolling_update: Option<RollingUpdate>,
}

/// Type of an update strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateStrategyType {
    /// Pods are replaced from the highest index down.
    RollingUpdate,
    /// Pods are replaced when the user deletes them.
    OnDelete,
    /// All outdated pods are deleted, then pods are created; since 1.37. Earlier versions treat it
    /// like an unknown type.
    Recreate,
    /// A type unknown to this version: replaces pods like a rolling update, but doesn't count as
    /// one in checks of the type.
    #[default]
    Other,
}

/// Parameters of a rolling update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollingUpdate {
    /// The lowest index (not ordinal) that is updated.
    pub partition: i32,
    /// Maximum number of unavailable pods during the update; `None` means 1.
    pub max_unavailable: Option<IntOrString>,
}

/// Treatment of claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimRetentionPolicy {
    /// Policy when the set is deleted.
    pub when_deleted: ClaimRetentionPolicyType,
    /// Policy when the set is scaled down below the claim's ordinal.
    pub when_scaled: ClaimRetentionPolicyType,
}

/// Treatment of one claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClaimRetentionPolicyType {
    /// Keep the claim.
    #[default]
    Retain,
    /// Delete the claim.
    Delete,
    /// A value unknown to this version.
    Other,
}

impl StatefulSetSpec {
    /// Returns true if pods are created and deleted in parallel.
    ///
    /// Upstream: `allowsBurst`.
    pub fn allows_burst(&self) -> bool {
        self.pod_management_policy == PodManagementPolicy::Parallel
    }

    /// Returns true if the set has the strategy `Recreate`.
    pub fn recreates(&self) -> bool {
        self.update_strategy.strategy_type == UpdateStrategyType::Recreate
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec<'a> {
    #[serde(default)]
    replicas: Option<i32>,
    #[serde(default)]
    ordinals: Option<RawOrdinals>,
    #[serde(default)]
    selector: Option<LabelSelector>,
    #[serde(default, borrow)]
    template: Option<&'a RawValue>,
    #[serde(default, borrow)]
    volume_claim_templates: Option<Vec<&'a RawValue>>,
    #[serde(default, deserialize_with = "or_default")]
    service_name: Box<str>,
    #[serde(default, deserialize_with = "or_default")]
    pod_management_policy: String,
    #[serde(default, deserialize_with = "or_default")]
    update_strategy: RawStrategy,
    #[serde(default)]
    revision_history_limit: Option<i32>,
    #[serde(default, deserialize_with = "or_default")]
    min_ready_seconds: i32,
    #[serde(default)]
    persistent_volume_claim_retention_policy: Option<RawRetentionPolicy>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawOrdinals {
    #[serde(deserialize_with = "or_default")]
    start: i32,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawStrategy {
    #[serde(rename = "type", deserialize_with = "or_default")]
    strategy_type: String,
    rolling_update: Option<RawRollingUpdate>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawRollingUpdate {
    partition: Option<i32>,
    max_unavailable: Option<IntOrString>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawRetentionPolicy {
    #[serde(deserialize_with = "or_default")]
    when_deleted: String,
    #[serde(deserialize_with = "or_default")]
    when_scaled: String,
}

impl StatefulSetSpec {
    /// Decodes the spec; its templates are slices of the text.
    pub(super) fn decode(spec: &SharedText) -> Result<Self, serde_json::Error> {
        let text = spec.to_str();
        let raw: RawSpec<'_> = serde_json::from_str(&text)?;
        let claim_templates = raw.volume_claim_templates.unwrap_or_default();
        let claim_templates: Vec<ClaimTemplate> = claim_templates
            .into_iter()
            .map(|template| ClaimTemplate::of(spec, template))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            replicas: raw.replicas.unwrap_or(REPLICAS_DEFAULT),
            start_ordinal: raw.ordinals.unwrap_or_default().start,
            selector: Arc::new(SetSelector::new(raw.selector)),
            template: PodTemplate::of(spec, raw.template),
            claim_templates: last_of_each_name(claim_templates).into(),
            service_name: raw.service_name,
            pod_management_policy: match raw.pod_management_policy.as_str() {
                "Parallel" => PodManagementPolicy::Parallel,
                _ => PodManagementPolicy::OrderedReady,
            },
            update_strategy: raw.update_strategy.into(),
            revision_history_limit: raw
                .revision_history_limit
                .unwrap_or(REVISION_HISTORY_LIMIT_DEFAULT),
            min_ready_seconds: raw.min_ready_seconds,
            claim_retention_policy: raw
                .persistent_volume_claim_retention_policy
                .map_or_else(ClaimRetentionPolicy::default, Into::into),
        })
    }
}

impl StatefulSetSpec {
    /// Makes the templates slices of another form of the spec's text.
    pub(super) fn move_templates(&mut self, spec: &SharedText, form: &SharedText) {
        self.template = self.template.moved(spec, form);
        self.claim_templates = self
            .claim_templates
            .iter()
            .map(|template| template.moved(spec, form))
            .collect();
    }
}

/// Keeps the last template of each name.
fn last_of_each_name(templates: Vec<ClaimTemplate>) -> Vec<ClaimTemplate> {
    let mut names: BTreeSet<Box<str>> = BTreeSet::new();
    let mut kept: Vec<ClaimTemplate> = templates
        .into_iter()
        .rev()
        .filter(|template| names.insert(template.name.clone()))
        .collect();
    kept.reverse();
    kept
}

impl From<RawStrategy> for UpdateStrategy {
    fn from(raw: RawStrategy) -> Self {
        Self {
            strategy_type: match raw.strategy_type.as_str() {
                "RollingUpdate" => UpdateStrategyType::RollingUpdate,
                "OnDelete" => UpdateStrategyType::OnDelete,
                "Recreate" => UpdateStrategyType::Recreate,
                _ => UpdateStrategyType::Other,
            },
            rolling_update: raw.rolling_update.map(|raw| RollingUpdate {
                partition: raw.partition.unwrap_or(0),
                max_unavailable: raw.max_unavailable,
            }),
        }
    }
}

impl From<RawRetentionPolicy> for ClaimRetentionPolicy {
    fn from(raw: RawRetentionPolicy) -> Self {
        let parse = |text: &str| match text {
            "Retain" => ClaimRetentionPolicyType::Retain,
            "Delete" => ClaimRetentionPolicyType::Delete,
            _ => ClaimRetentionPolicyType::Other,
        };
        Self {
            when_deleted: parse(&raw.when_deleted),
            when_scaled: parse(&raw.when_scaled),
        }
    }
}
