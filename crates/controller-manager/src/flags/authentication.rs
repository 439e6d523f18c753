//! Authentication flags of the program's own endpoints.

use std::time::Duration;

use anyhow::ensure;
use clap::ArgAction;

use super::values::{self, OptionalPath, Strings};

/// Upstream: `DelegatingAuthenticationOptions`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Authentication flags")]
pub(crate) struct AuthenticationFlags {
    /// Kubeconfig with permission to create tokenreviews.authentication.k8s.io. Without it all
    /// tokens count as anonymous, and no client CA is looked up in the cluster
    #[arg(long, value_name = "string", default_value = "", value_parser = values::path)]
    pub(crate) authentication_kubeconfig: OptionalPath,

    /// Don't look up missing authentication settings in the cluster
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(crate) authentication_skip_lookup: bool,

    /// Lifetime of cached results of token reviews
    #[arg(long, value_name = "duration", default_value = "10s", value_parser = values::duration)]
    pub(crate) authentication_token_webhook_cache_ttl: Duration,

    /// Accepted for compatibility: a failed lookup is always logged and retried, and until it
    /// succeeds client certificates and request headers are ignored
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(crate) authentication_tolerate_lookup_failure: bool,

    /// Certificates of the authorities whose client certificates are accepted; the common name is
    /// the user, organizations are groups
    #[arg(long, value_name = "string", default_value = "", value_parser = values::path)]
    pub(crate) client_ca_file: OptionalPath,

    /// Common names of client certificates that may name a user in headers; if empty, every
    /// certificate signed by --requestheader-client-ca-file
    #[arg(long, value_name = "strings", default_value = "", value_parser = values::strings)]
    pub(crate) requestheader_allowed_names: Strings,

    /// Certificates of the authorities whose clients may name a user in headers
    #[arg(long, value_name = "string", default_value = "", value_parser = values::path)]
    pub(crate) requestheader_client_ca_file: OptionalPath,

    /// Prefixes of headers with extra attributes of the user
    #[arg(long, value_name = "strings", default_value = "x-remote-extra-", value_parser = values::strings)]
    pub(crate) requestheader_extra_headers_prefix: Strings,

    /// Headers with the user's groups
    #[arg(long, value_name = "strings", default_value = "x-remote-group", value_parser = values::strings)]
    pub(crate) requestheader_group_headers: Strings,

    /// Headers with the user's uid
    #[arg(long, value_name = "strings", default_value = "", value_parser = values::strings)]
    pub(crate) requestheader_uid_headers: Strings,

    /// Headers with the user's name
    #[arg(long, value_name = "strings", default_value = "x-remote-user", value_parser = values::strings)]
    pub(crate) requestheader_username_headers: Strings,
}

impl AuthenticationFlags {
    /// Checks that no header name is empty.
    ///
    /// # Errors
    ///
    /// The first flag with an empty name, in the words of upstream.
    ///
    /// Upstream: `RequestHeaderAuthenticationOptions.Validate`.
    pub(crate) fn validate(&self) -> anyhow::Result<()> {
        for (flag, names) in [
            ("username-headers", &self.requestheader_username_headers),
            ("uid-headers", &self.requestheader_uid_headers),
            ("group-headers", &self.requestheader_group_headers),
            (
                "extra-headers-prefix",
                &self.requestheader_extra_headers_prefix,
            ),
            ("allowed-names", &self.requestheader_allowed_names),
        ] {
            let flag = format!("requestheader-{flag}");
            let filled = names.iter().all(|name| !name.trim().is_empty());
            ensure!(filled, "empty value in {flag:?}");
        }
        Ok(())
    }
}
