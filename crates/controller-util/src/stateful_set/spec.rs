//! The typed view of a set's spec.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_apimachinery::int_or_string::IntOrString;
use kube_apimachinery::selector::LabelSelector;
use serde::Deserialize;
use serde_json::value::RawValue;
use statefulset_client::cache::indexer::SharedText;

use super::selector::SetSelector;
use super::template::{ClaimTemplate, PodTemplate};
use crate::decode::or_default;

/// Replicas of a set that doesn't say how many; API defaulting normally fills it in.
const REPLICAS_DEFAULT: i32 = 1;
/// Old revisions kept by a set that doesn't say how many; API defaulting normally fills it in.
const REVISION_HISTORY_LIMIT_DEFAULT: i32 = 10;

/// What a set asks for.
#[derive(Clone, Debug)]
pub struct StatefulSetSpec {
    /// Wanted number of pods.
    pub replicas: i32,
    /// The first ordinal.
    pub start_ordinal: i32,
    /// Which pods belong to the set.
    pub selector: Arc<SetSelector>,
    /// The pod template, verbatim.
    pub template: PodTemplate,
    /// The claim templates, verbatim; of equal names only the last one.
    pub claim_templates: Arc<[ClaimTemplate]>,
    /// Name of the governing service; may be empty.
    pub service_name: Box<str>,
    /// How pods are created and deleted relative to each other.
    pub pod_management_policy: PodManagementPolicy,
    /// How pods move to a new revision.
    pub update_strategy: UpdateStrategy,
    /// How many revisions that nothing uses are kept; negative keeps all.
    pub revision_history_limit: i32,
    /// Seconds that a pod must have been ready to count as available.
    pub min_ready_seconds: i32,
    /// What becomes of claims when the set is scaled or deleted.
    pub claim_retention_policy: ClaimRetentionPolicy,
}

/// How pods are created and deleted relative to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodManagementPolicy {
    /// One after the other in order; also what any unknown policy means.
    #[default]
    OrderedReady,
    /// All at once, in batches.
    Parallel,
}

/// How pods move to a new revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateStrategy {
    /// Which strategy.
    pub strategy_type: UpdateStrategyType,
    /// Parameters of a rolling update; may be absent although the strategy is one.
    pub rolling_update: Option<RollingUpdate>,
}

/// The update strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateStrategyType {
    /// Pods are replaced from the highest index down.
    RollingUpdate,
    /// Pods are replaced when the user deletes them.
    OnDelete,
    /// A strategy that this version doesn't know: replaces pods as a rolling update does, but
    /// never counts as one where the type itself is asked for.
    #[default]
    Other,
}

/// Parameters of a rolling update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollingUpdate {
    /// The lowest index (not ordinal) that is updated.
    pub partition: i32,
    /// How many pods may be unavailable during the update; none means 1.
    pub max_unavailable: Option<IntOrString>,
}

/// What becomes of claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimRetentionPolicy {
    /// When the set is deleted.
    pub when_deleted: ClaimRetentionPolicyType,
    /// When the set is scaled down past the claim's ordinal.
    pub when_scaled: ClaimRetentionPolicyType,
}

/// What becomes of one claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClaimRetentionPolicyType {
    /// It stays.
    #[default]
    Retain,
    /// It goes.
    Delete,
    /// A value that this version doesn't know.
    Other,
}

impl StatefulSetSpec {
    /// Whether pods are created and deleted all at once.
    ///
    /// Upstream: `allowsBurst`.
    pub fn allows_burst(&self) -> bool {
        self.pod_management_policy == PodManagementPolicy::Parallel
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawSpec<'a> {
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
    /// The spec in the text of a set.
    pub(super) fn of(set: &SharedText, raw: RawSpec<'_>) -> Result<Self, serde_json::Error> {
        let claim_templates = raw.volume_claim_templates.unwrap_or_default();
        let claim_templates: Vec<ClaimTemplate> = claim_templates
            .into_iter()
            .map(|template| ClaimTemplate::of(set, template))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            replicas: raw.replicas.unwrap_or(REPLICAS_DEFAULT),
            start_ordinal: raw.ordinals.unwrap_or_default().start,
            selector: Arc::new(SetSelector::new(raw.selector)),
            template: PodTemplate::of(set, raw.template),
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
    /// Points the templates into another form of the set's text.
    pub(super) fn move_templates(&mut self, set: &SharedText, form: &SharedText) {
        self.template = self.template.moved(set, form);
        self.claim_templates = self
            .claim_templates
            .iter()
            .map(|template| template.moved(set, form))
            .collect();
    }
}

/// Of templates with one name, the last.
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
