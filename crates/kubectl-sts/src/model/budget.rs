//! Disruption budgets.

use kube_apimachinery::selector::{LabelSelector, Selector};
use serde::Deserialize;

use super::Metadata;

/// A budget of evictions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Metadata.
    pub metadata: Metadata,
    spec: BudgetSpec,
    /// Status.
    pub status: BudgetStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct BudgetSpec {
    selector: Option<LabelSelector>,
}

/// The status of a budget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BudgetStatus {
    /// Evictions that are allowed now.
    pub disruptions_allowed: i32,
    /// Healthy pods now.
    pub current_healthy: i32,
    /// Healthy pods that must remain.
    pub desired_healthy: i32,
}

impl Budget {
    /// Reports whether the budget selects a pod with these labels. An invalid selector selects none.
    pub fn selects(&self, labels: &std::collections::BTreeMap<String, String>) -> bool {
        let selector = Selector::from_label_selector(self.spec.selector.as_ref());
        selector.is_ok_and(|selector| selector.matches(labels))
    }

    /// The state in one sentence.
    pub fn text(&self) -> String {
        let BudgetStatus {
            disruptions_allowed,
            current_healthy,
            desired_healthy,
        } = &self.status;
        format!(
            "PodDisruptionBudget {} allows {disruptions_allowed} evictions ({current_healthy} pods \
             healthy, {desired_healthy} required)",
            self.metadata.name
        )
    }
}
