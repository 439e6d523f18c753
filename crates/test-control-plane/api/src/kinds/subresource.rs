//! The subresources as data.

use serde::Deserialize;

use super::Verb;

/// A subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subresource {
    /// `/approval` of certificate signing requests.
    Approval,
    /// `/attach` of pods.
    Attach,
    /// `/binding` of pods.
    Binding,
    /// `/ephemeralcontainers` of pods.
    EphemeralContainers,
    /// `/eviction` of pods.
    Eviction,
    /// `/exec` of pods.
    Exec,
    /// `/finalize` of namespaces.
    Finalize,
    /// `/log` of pods.
    Log,
    /// `/portforward` of pods.
    PortForward,
    /// `/proxy` of nodes, pods and services, with any path below it.
    Proxy,
    /// `/resize` of pods.
    Resize,
    /// `/scale`.
    Scale,
    /// `/status`.
    Status,
    /// `/token` of service accounts.
    Token,
}

impl Subresource {
    /// Returns the last segment of the URL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Attach => "attach",
            Self::Binding => "binding",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Eviction => "eviction",
            Self::Exec => "exec",
            Self::Finalize => "finalize",
            Self::Log => "log",
            Self::PortForward => "portforward",
            Self::Proxy => "proxy",
            Self::Resize => "resize",
            Self::Scale => "scale",
            Self::Status => "status",
            Self::Token => "token",
        }
    }

    /// Returns the supported verbs, in discovery order.
    pub fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Attach | Self::Exec | Self::PortForward => &[Verb::Create, Verb::Get],
            Self::Binding | Self::Eviction | Self::Token => &[Verb::Create],
            Self::Approval
            | Self::EphemeralContainers
            | Self::Resize
            | Self::Scale
            | Self::Status => &[Verb::Get, Verb::Patch, Verb::Update],
            Self::Finalize => &[Verb::Update],
            Self::Log => &[Verb::Get],
            Self::Proxy => &[
                Verb::Create,
                Verb::Delete,
                Verb::Get,
                Verb::Patch,
                Verb::Update,
            ],
        }
    }
}
