//! Authorization flags of the program's own endpoints.

use std::time::Duration;

use super::values::{self, OptionalPath, Strings};

/// Upstream: `DelegatingAuthorizationOptions`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[expect(
    clippy::struct_field_names,
    reason = "the fields have the names of the flags"
)]
#[command(next_help_heading = "Authorization flags")]
pub(crate) struct AuthorizationFlags {
    /// Paths that anyone may read without authorization. A trailing * matches any suffix
    #[arg(
        long,
        value_name = "strings",
        default_value = "/healthz,/readyz,/livez",
        value_parser = values::strings
    )]
    pub(crate) authorization_always_allow_paths: Strings,

    /// Kubeconfig with permission to create subjectaccessreviews.authorization.k8s.io. Without it
    /// all other paths are forbidden
    #[arg(long, value_name = "string", default_value = "", value_parser = values::path)]
    pub(crate) authorization_kubeconfig: OptionalPath,

    /// Lifetime of cached allowed requests
    #[arg(long, value_name = "duration", default_value = "10s", value_parser = values::duration)]
    pub(crate) authorization_webhook_cache_authorized_ttl: Duration,

    /// Lifetime of cached denied requests
    #[arg(long, value_name = "duration", default_value = "10s", value_parser = values::duration)]
    pub(crate) authorization_webhook_cache_unauthorized_ttl: Duration,
}
