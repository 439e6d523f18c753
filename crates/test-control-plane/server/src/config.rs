//! Configuration of the server.

mod service_range;

use std::time::Duration;

use crate::auth::{Authorization, Tokens};
use kube_test_control_plane_api::setters;
pub use kube_test_control_plane_api::settings::{
    EmulatedVersion, EmulatedVersionError, FeatureGateError, ServerGates, UnknownFields,
    UnknownFieldsError,
};
pub use service_range::{ServiceRange, ServiceRangeError};

/// Configuration of the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Handling of fields that are missing in the schema of the emulated version.
    pub unknown_fields: UnknownFields,
    /// The version of the schema, shown by `/version`, `/metrics` and the nodes. Set
    /// [`Self::feature_gates`] to this version's with [`ServerGates::at`], too.
    pub emulated_version: EmulatedVersion,
    /// Enabled features.
    pub feature_gates: ServerGates,
    /// Validation of writes. Without validation the server stores objects that another
    /// server accepts; it still decodes them, sets defaults and runs admission.
    pub validates: bool,
    /// The network from which services get their addresses.
    pub service_cluster_ip_range: ServiceRange,
    /// Admission of pods by their service account, which must exist: it adds the volume with the
    /// account's token, and the account's secrets for images. Namespaces get a `default` account and
    /// the certificates of the server.
    pub service_account_admission: bool,
    /// Number of events kept for watches and old lists.
    pub log_window: usize,
    /// Number of requests kept by the audit log.
    pub audit_limit: usize,
    /// Limit of the request bodies kept by the audit log, in bytes. Above it, the oldest bodies are
    /// dropped, except those of 1 KiB or less.
    pub audit_bodies_max: usize,
    /// Interval of bookmarks.
    pub bookmark_interval: Duration,
    /// The seed of uids, generated names and watch timeouts.
    pub seed: u64,
    /// Static bearer tokens.
    pub tokens: Tokens,
    /// Authorization modes; RBAC by default.
    pub authorization: Authorization,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            unknown_fields: UnknownFields::default(),
            emulated_version: EmulatedVersion::default(),
            feature_gates: ServerGates::default(),
            validates: true,
            service_cluster_ip_range: ServiceRange::default(),
            service_account_admission: false,
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

impl ServerConfig {
    setters! {
        /// Sets the handling of fields that are missing in the schema.
        unknown_fields: UnknownFields,
        /// Sets the version of the schema. Its features need [`Self::feature_gates`].
        emulated_version: EmulatedVersion,
        /// Sets the enabled features.
        feature_gates: ServerGates,
        /// Enables the validation of writes.
        validates: bool,
        /// Sets the network from which services get their addresses.
        service_cluster_ip_range: ServiceRange,
        /// Enables the admission of pods by their service account.
        service_account_admission: bool,
        /// Sets the number of events kept for watches and old lists.
        log_window: usize,
        /// Sets the number of requests kept by the audit log.
        audit_limit: usize,
        /// Sets the limit of the request bodies kept by the audit log, in bytes.
        audit_bodies_max: usize,
        /// Sets the interval of bookmarks.
        bookmark_interval: Duration,
        /// Sets the seed of uids, generated names and watch timeouts.
        seed: u64,
        /// Sets the static bearer tokens.
        tokens: Tokens,
        /// Sets the authorization modes.
        authorization: Authorization,
    }
}
