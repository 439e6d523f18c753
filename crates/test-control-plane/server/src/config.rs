//! How the server behaves.

use std::time::Duration;

use crate::auth::{Authorization, Tokens};
pub use kube_test_control_plane_api::settings::{
    FeatureGateError, FeatureGates, UnknownFields, UnknownFieldsError,
};

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What becomes of members that the schema doesn't know.
    pub unknown_fields: UnknownFields,
    /// Which optional behaviour is on.
    pub feature_gates: FeatureGates,
    /// How many events are kept for watches and old lists.
    pub log_window: usize,
    /// How many requests the audit log keeps.
    pub audit_limit: usize,
    /// How much the audit log keeps of the bodies of requests in all, in bytes. Beyond that the
    /// oldest ones are dropped, except those of 1 KiB or less.
    pub audit_bodies_max: usize,
    /// How often a watch that asked for bookmarks gets one.
    pub bookmark_interval: Duration,
    /// The seed of uids, generated names and watch timeouts.
    pub seed: u64,
    /// The tokens that are known.
    pub tokens: Tokens,
    /// Who decides what users may do; roles and bindings by default.
    pub authorization: Authorization,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            unknown_fields: UnknownFields::default(),
            feature_gates: FeatureGates::default(),
            log_window: 20_000,
            audit_limit: 10_000,
            audit_bodies_max: 8 * 1024 * 1024,
            bookmark_interval: Duration::from_secs(60),
            seed: 0,
            tokens: Tokens::default(),
            authorization: Authorization::default(),
        }
    }
}
