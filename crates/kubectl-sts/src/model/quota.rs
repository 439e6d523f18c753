//! Resource quotas.

use std::collections::BTreeMap;

use kube_apimachinery::quantity::Quantity;
use serde::Deserialize;

/// A quota of a namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Quota {
    spec: QuotaSpec,
    status: QuotaStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct QuotaSpec {
    hard: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct QuotaStatus {
    used: BTreeMap<String, String>,
}

impl Quota {
    /// The limit of a resource.
    pub fn hard(&self, resource: &str) -> Option<Quantity> {
        self.spec.hard.get(resource)?.parse().ok()
    }

    /// The used amount of a resource.
    pub fn used(&self, resource: &str) -> Option<Quantity> {
        self.status.used.get(resource)?.parse().ok()
    }
}
