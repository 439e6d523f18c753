//! Switches of the deliberate deviations.

/// Switches of the deliberate deviations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each rule is independent of the others"
)]
pub struct Rules {
    /// Pods with names like the set's but not canonical (`web-007`, ordinals beyond 32 bits) are
    /// ignored and stay untouched.
    pub canonical_names: bool,
    /// Status writes keep the conditions.
    pub keep_conditions: bool,
    /// Counters don't fall below 0 when a pod is deleted.
    pub counters_not_negative: bool,
    /// Renumbering a revision is retried on conflict, with at most four attempts.
    pub retry_renumbering: bool,
    /// The live set is read before a claim gets an owner, and before a pod is deleted with its
    /// claims.
    pub live_set_before_dooming: bool,
    /// A desired pod that has ended or is terminating is removed from the owners of its claims.
    pub take_claims_from_wanted: bool,
    /// References to earlier sets and pods go from a claim's owners with that to the set or the pod.
    pub release_stale_owners: bool,
    /// Deletions specify the object's uid.
    pub deletions_name_objects: bool,
    /// Fields unknown to the schema are recorded and kept, and restart nothing.
    pub unknown_members: bool,
}

impl Rules {
    /// Upstream: no deviations.
    pub const UPSTREAM: Self = Self {
        canonical_names: false,
        keep_conditions: false,
        counters_not_negative: false,
        retry_renumbering: false,
        live_set_before_dooming: false,
        take_claims_from_wanted: false,
        release_stale_owners: false,
        deletions_name_objects: false,
        unknown_members: false,
    };

    /// The product: all deviations.
    pub const PRODUCT: Self = Self {
        canonical_names: true,
        keep_conditions: true,
        counters_not_negative: true,
        retry_renumbering: true,
        live_set_before_dooming: true,
        take_claims_from_wanted: true,
        release_stale_owners: true,
        deletions_name_objects: true,
        unknown_members: true,
    };
}
