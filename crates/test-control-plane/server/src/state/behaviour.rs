//! The part of the configuration that an upgrade or a rollback of the server changes.

use kube_test_control_plane_api::managed_fields::Strictness;

use crate::config::{EmulatedVersion, ServerConfig, ServerGates, UnknownFields};

/// The server's version and its handling of unknown fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    pub(crate) unknown_fields: UnknownFields,
    pub(crate) version: EmulatedVersion,
    pub(crate) gates: ServerGates,
}

impl Behaviour {
    /// Returns the behaviour of a new server.
    pub(super) fn initial(config: &ServerConfig) -> Self {
        Self {
            unknown_fields: config.unknown_fields,
            version: config.emulated_version,
            gates: config.feature_gates,
        }
    }

    /// Returns the handling of unknown fields in configurations.
    pub(crate) fn strictness(self) -> Strictness {
        match self.unknown_fields {
            UnknownFields::Keep => Strictness::Any,
            UnknownFields::Prune => Strictness::Declared(self.version),
        }
    }
}
