//! The policies and bindings of a fence.

use serde::{Deserialize, Serialize};

/// An object of the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FencePart {
    /// The policy that denies the built-in controller's writes.
    Fence,
    /// Its binding.
    FenceBinding,
    /// The policy that denies the instances' writes in other namespaces.
    Mirror,
    /// Its binding.
    MirrorBinding,
}

impl FencePart {
    /// All parts, in the order of an installation.
    pub const ALL: [Self; 4] = [
        Self::Mirror,
        Self::MirrorBinding,
        Self::Fence,
        Self::FenceBinding,
    ];
}

/// The state of an object of the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartState {
    /// As shipped.
    Shipped,
    /// Changed so that nothing is denied.
    Open,
    /// Deleted.
    Missing,
}
