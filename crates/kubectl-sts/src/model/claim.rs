//! Claims and volumes.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Condition, Metadata};

/// A claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Claim {
    /// Metadata.
    pub metadata: Metadata,
    /// Desired state.
    pub spec: ClaimSpec,
    /// Status.
    pub status: ClaimStatus,
}

/// The desired state of a claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimSpec {
    /// Storage class.
    pub storage_class_name: Option<String>,
    /// The volume, once the claim is bound.
    pub volume_name: String,
    /// Requested amounts.
    pub resources: Resources,
}

/// Requested amounts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Amounts by resource.
    pub requests: BTreeMap<String, String>,
}

/// The status of a claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClaimStatus {
    /// Phase.
    pub phase: String,
    /// Conditions.
    pub conditions: Vec<Condition>,
}

/// The finalizer of claims in use.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

impl Claim {
    /// The finalizers besides the one that keeps a claim in use.
    pub fn foreign_finalizers(&self) -> impl Iterator<Item = &str> {
        let finalizers = self.metadata.finalizers.iter().map(String::as_str);
        finalizers.filter(|it| *it != PROTECTION)
    }

    /// The conditions with which the storage provider reports that it failed to expand the volume.
    pub fn failed_expansions(&self) -> impl Iterator<Item = &Condition> {
        let failures = ["ControllerResizeError", "NodeResizeError"];
        let conditions = self.status.conditions.iter();
        conditions.filter(move |it| failures.contains(&it.kind.as_str()) && it.status == "True")
    }

    /// The requested size; empty without one.
    pub fn size(&self) -> &str {
        let size = self.spec.resources.requests.get("storage");
        size.map_or("", String::as_str)
    }
}

/// A volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Volume {
    /// Metadata.
    pub metadata: Metadata,
    /// Desired state.
    pub spec: VolumeSpec,
}

/// The desired state of a volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeSpec {
    /// `Delete`, `Retain` or `Recycle`: the end of the volume when its claim ends.
    pub persistent_volume_reclaim_policy: String,
}
