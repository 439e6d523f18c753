//! Names of the crates between client and controller that embedders use: cached types, the
//! dependencies of a syncer, and errors.

/// Cached claims.
pub mod claim {
    pub use statefulset_controller_util::claim::Claim;
}

/// Caches and their versions.
pub mod consistency {
    pub use statefulset_controller_util::consistency::{
        CacheVersions, Caches, ConsistencyStore, NoopConsistencyStore, RealConsistencyStore,
        StaleCache, TrackedResource,
    };
}

/// Adoption and release.
pub mod controller_ref_manager {
    pub use statefulset_controller_util::controller_ref_manager::{
        CanAdoptError, ClaimError, SetReader,
    };
}

/// Cached revisions.
pub mod controller_revision {
    pub use statefulset_controller_util::controller_revision::ControllerRevision;
}

/// Errors of the layers below a sync.
pub mod error {
    pub use statefulset_controller_util::error::Aggregate;
    pub use statefulset_controller_util::live_set_check::LiveSetError;
    pub use statefulset_history::Error as HistoryError;
    pub use statefulset_pod_control::Error as PodError;
    pub use statefulset_set_control::Error as UpdateError;
}

/// Cached pods.
pub mod pod {
    pub use statefulset_controller_util::pod::{ClaimVolume, Pod, PodName};
}

/// Adoption and release of single pods.
pub mod pod_control {
    pub use statefulset_controller_util::pod_control::PodControl;
}

/// The update of one set.
pub mod set_control {
    pub use statefulset_set_control::StatefulSetControl;
}

/// Cached sets.
pub mod stateful_set {
    pub use statefulset_controller_util::stateful_set::{
        AppliedRevision, ClaimRetentionPolicy, ClaimRetentionPolicyType, ClaimTemplate, Condition,
        Conditions, ConvertError, PodManagementPolicy, PodTemplate, RecreateProgress,
        RollingUpdate, SetMetadata, SetSelector, StatefulSet, StatefulSetSpec, StatefulSetStatus,
        TemplateMembers, TemplateMemo, UpdateStrategy, UpdateStrategyType,
    };
}
