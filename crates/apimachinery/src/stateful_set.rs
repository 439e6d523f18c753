//! Rules of stateful sets that clients and servers share.

/// Fields of a stateful set's spec that updates may change.
///
/// Upstream: `ValidateStatefulSetUpdate`.
pub const MUTABLE_SPEC_FIELDS: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];
