//! StatefulSets.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use super::{Condition, number, text};
use crate::plan::{ClaimRetention, MaxUnavailable, Retain, UpdateMode};

/// A StatefulSet.
#[derive(Clone, Debug)]
pub struct Set {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Generation.
    pub generation: i64,
    /// True if it is being deleted.
    pub terminating: bool,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Number of pods.
    pub replicas: u32,
    /// The first ordinal.
    pub start: u32,
    /// True if pods are created and deleted in parallel.
    pub parallel: bool,
    /// The update mode.
    pub update: UpdateMode,
    /// Number of pods that keep the old revision.
    pub partition: u32,
    /// The maximum of unavailable pods.
    pub max_unavailable: Option<MaxUnavailable>,
    /// Seconds for which a ready pod must stay ready.
    pub min_ready_seconds: u32,
    /// Value of the label that the selector matches.
    pub app: String,
    /// Name of the governing service.
    pub service: String,
    /// Names of the claim templates.
    pub claims: Vec<String>,
    /// The claim templates.
    pub claim_templates: Vec<Value>,
    /// Retention of claims.
    pub retention: ClaimRetention,
    /// Number of old revisions to keep.
    pub history_limit: i64,
    /// The pod template, without what restarts nothing.
    pub template: Value,
    /// The pod template as it is stored.
    pub stored: Value,
    /// Status.
    pub status: Status,
    /// Conditions, by type.
    pub conditions: Vec<Condition>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

/// Status of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Observed generation.
    pub observed_generation: i64,
    /// Number of pods.
    pub replicas: i64,
    /// Number of ready pods.
    pub ready: i64,
    /// Number of available pods.
    pub available: i64,
    /// Number of pods of the current revision.
    pub current: i64,
    /// Number of pods of the update revision.
    pub updated: i64,
    /// The current revision.
    pub current_revision: String,
    /// The update revision.
    pub update_revision: String,
}

impl Set {
    /// Reads a set.
    pub fn read(value: &Value) -> Self {
        let unsigned = |pointer| u32::try_from(number(value, pointer)).unwrap_or_default();
        let templates = value.pointer("/spec/volumeClaimTemplates");
        let templates = templates.and_then(Value::as_array).into_iter().flatten();
        let claim_templates: Vec<Value> = templates.cloned().collect();
        let claims = claim_templates.iter();
        Self {
            name: text(value, "/metadata/name"),
            uid: text(value, "/metadata/uid"),
            generation: number(value, "/metadata/generation"),
            terminating: super::is_terminating(value),
            finalizers: super::texts(value, "/metadata/finalizers"),
            replicas: unsigned("/spec/replicas"),
            start: unsigned("/spec/ordinals/start"),
            parallel: text(value, "/spec/podManagementPolicy") == "Parallel",
            update: read_member(value, "/spec/updateStrategy/type"),
            partition: unsigned("/spec/updateStrategy/rollingUpdate/partition"),
            max_unavailable: read_member(
                value,
                "/spec/updateStrategy/rollingUpdate/maxUnavailable",
            ),
            min_ready_seconds: unsigned("/spec/minReadySeconds"),
            app: text(value, "/spec/selector/matchLabels/app"),
            service: text(value, "/spec/serviceName"),
            claims: claims.map(|it| text(it, "/metadata/name")).collect(),
            claim_templates,
            retention: read_member(value, "/spec/persistentVolumeClaimRetentionPolicy"),
            history_limit: number(value, "/spec/revisionHistoryLimit"),
            template: super::known_template(
                value.pointer("/spec/template").cloned().unwrap_or_default(),
            ),
            stored: value.pointer("/spec/template").cloned().unwrap_or_default(),
            status: Status {
                observed_generation: number(value, "/status/observedGeneration"),
                replicas: number(value, "/status/replicas"),
                ready: number(value, "/status/readyReplicas"),
                available: number(value, "/status/availableReplicas"),
                current: number(value, "/status/currentReplicas"),
                updated: number(value, "/status/updatedReplicas"),
                current_revision: text(value, "/status/currentRevision"),
                update_revision: text(value, "/status/updateRevision"),
            },
            conditions: Condition::read_all(value),
            annotations: super::map(value, "/metadata/annotations"),
        }
    }

    /// Returns the forms in which a controller that emulates this minor version looks for a record of
    /// the template: earlier ones record a creation time of null, and know the later form as well.
    pub fn recorded_by(&self, minor: u32) -> Vec<Value> {
        let mut forms = vec![self.stored.clone()];
        if minor < FIRST_WITHOUT_NULL {
            let mut earlier = self.stored.clone();
            let metadata = earlier.pointer_mut("/metadata");
            if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
                metadata.insert("creationTimestamp".to_owned(), Value::Null);
            }
            forms.push(earlier);
        }
        forms
    }

    /// Reports whether users delete the pods to update.
    pub fn is_on_delete(&self) -> bool {
        self.update == UpdateMode::OnDelete
    }

    /// Reports whether claims are deleted with the set.
    pub fn deletes_claims_with_set(&self) -> bool {
        self.retention.when_deleted == Retain::Delete
    }

    /// Reports whether claims are deleted when the set is scaled down.
    pub fn deletes_claims_when_scaled(&self) -> bool {
        self.retention.when_scaled == Retain::Delete
    }

    /// The desired ordinals.
    pub fn range(&self) -> Range<u32> {
        self.start..self.start.saturating_add(self.replicas)
    }

    /// The number of pods that an update may make unavailable.
    pub fn max_unavailable(&self, gate: bool) -> usize {
        let max = match &self.max_unavailable {
            Some(MaxUnavailable::Pods(pods)) if gate => *pods as usize,
            Some(MaxUnavailable::Percent(text)) if gate => {
                let percent: usize = text.trim_end_matches('%').parse().unwrap_or_default();
                self.replicas as usize * percent / 100
            }
            _ => 1,
        };
        max.max(1)
    }

    /// Reports whether a claim's name follows from a template of this set, and the pod's ordinal.
    pub fn ordinal_of_claim(&self, claim: &str) -> Option<u32> {
        self.claims.iter().find_map(|template| {
            let rest = claim.strip_prefix(template.as_str())?;
            let rest = rest.strip_prefix('-')?.strip_prefix(self.name.as_str())?;
            let digits = rest.strip_prefix('-')?;
            let ordinal: u32 = digits.parse().ok()?;
            (ordinal.to_string() == digits).then_some(ordinal)
        })
    }

    /// Returns the names of a pod's claims.
    pub fn claims_of(&self, ordinal: u32) -> impl Iterator<Item = String> {
        let templates = self.claims.iter();
        templates.map(move |template| format!("{template}-{}-{ordinal}", self.name))
    }

    /// Reports whether the set keeps the claims of this ordinal when its pod goes.
    pub fn keeps_claims_of(&self, ordinal: u32) -> bool {
        !self.deletes_claims_when_scaled() || self.range().contains(&ordinal)
    }
}

/// The minor version since which revisions don't record the creation time of a template.
const FIRST_WITHOUT_NULL: u32 = 34;

/// Reads a field; absent ones have their default.
fn read_member<T: serde::de::DeserializeOwned + Default>(value: &Value, pointer: &str) -> T {
    let found = value.pointer(pointer).cloned();
    let read = found.and_then(|found| serde_json::from_value(found).ok());
    read.unwrap_or_default()
}
