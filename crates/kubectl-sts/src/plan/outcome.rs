//! The effects of a change, as data.

use serde::Serialize;
use serde_json::Value;

use super::steps::Step;
use super::volumes::DeletedClaim;
use crate::model::Set;

/// The effects of a change.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    pub(super) namespace: String,
    pub(super) set: String,
    /// The controller's writes, in order.
    pub(super) steps: Vec<Step>,
    /// Claims that would be deleted, with the end of their data.
    pub(super) claims_deleted: Vec<DeletedClaim>,
    /// Claims that are being deleted, but survive the change.
    pub(super) claims_at_risk: Vec<ClaimAtRisk>,
    /// Ready pods now, and the fewest at any moment of the plan.
    pub(super) ready: usize,
    pub(super) least_ready: usize,
    /// Budgets of the pods, and the healthy pods that each requires.
    pub(super) budgets: Vec<PlannedBudget>,
    /// True if no pod is ready at some moment, although several are now.
    pub(super) all_at_once: bool,
    /// True if the set would be complete at the end.
    pub(super) is_complete: bool,
    /// The reason to wait at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ends_with: Option<String>,
    /// Estimated duration.
    pub(super) seconds: i64,
    /// Seconds that the existing pods took to become ready; `None` without such pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seconds_to_ready: Option<i64>,
}

/// A claim that is being deleted and survives the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClaimAtRisk {
    pub(super) name: String,
    /// The objects that still keep it, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<String>,
}

/// A disruption budget of the set's pods. It doesn't limit the controller's
/// deletions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedBudget {
    pub(super) name: String,
    pub(super) required: i32,
    /// True if fewer pods than required are ready at some moment.
    pub(super) is_broken: bool,
}

/// An object that the controller couldn't create in the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejected {
    pub(super) resource: String,
    pub(super) name: String,
    /// The reason of the copy's validation.
    pub(super) message: String,
    pub(super) body: Value,
}

impl Plan {
    /// The number of claims that would be deleted.
    pub(crate) fn claims_deleted(&self) -> usize {
        self.claims_deleted.len()
    }

    /// True if data would be lost, or every pod be down at once.
    pub(crate) fn is_dangerous(&self) -> bool {
        self.claims_deleted.iter().any(DeletedClaim::is_dangerous) || self.all_at_once
    }
}

/// Reports whether all desired pods are available and the controller has seen the last change.
pub(super) fn is_complete(set: &Set) -> bool {
    let status = &set.status;
    let counters = [
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
    ];
    status.observed_generation >= set.metadata.generation
        && counters.iter().all(|counter| *counter == set.replicas())
}
