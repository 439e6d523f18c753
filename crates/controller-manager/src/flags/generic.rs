//! Flags that every controller manager has.

use std::time::Duration;

use clap::ArgAction;
use statefulset_client::rest::MediaType;

use super::values::{self, Strings};

/// Upstream: `GenericControllerManagerConfigurationOptions`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Generic flags")]
pub(crate) struct GenericFlags {
    /// Interval between syncs of all cached objects, multiplied by a random factor from 1 to 2; 0s
    /// for never
    #[arg(long, value_name = "duration", default_value = "12h0m0s", value_parser = values::duration)]
    pub(crate) min_resync_period: Duration,

    /// Preferred content type of watched pods: application/vnd.kubernetes.protobuf or
    /// application/json. All other requests and responses are JSON
    #[arg(long, value_name = "string", default_value = MediaType::Protobuf.name(), value_parser = content_type)]
    pub(crate) kube_api_content_type: MediaType,

    /// Average requests per second to the API server, per client: informers have one client, the
    /// controller and its events another. Negative for no limit
    #[arg(long, value_name = "float", default_value = "20", value_parser = values::float)]
    pub(crate) kube_api_qps: f64,

    /// Largest burst of requests to the API server, per client
    #[arg(long, value_name = "int", default_value = "30", value_parser = values::int)]
    pub(crate) kube_api_burst: i32,

    /// Delay before the controller starts, multiplied by a random factor from 1 to 2
    #[arg(long, value_name = "duration", default_value = "0s", value_parser = values::duration)]
    pub(crate) controller_start_interval: Duration,

    /// Time for the syncs in progress to finish on shutdown; 0s for no limit
    #[arg(long, value_name = "duration", default_value = "10s", value_parser = values::duration)]
    pub(crate) controller_shutdown_timeout: Duration,

    /// Controllers to run: '*' for all, 'name' for one, '-name' to exclude one. This program has
    /// only statefulset-controller
    #[arg(long, value_name = "strings", default_value = "*", value_parser = values::strings)]
    pub(crate) controllers: Strings,

    /// Write as the service account kube-system/statefulset-controller,
    /// with tokens that it requests with its own credentials; caches and leader election use these
    /// credentials directly
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(crate) use_service_account_credentials: bool,
}

fn content_type(text: &str) -> Result<MediaType, &'static str> {
    if text.is_empty() {
        return Ok(MediaType::Json);
    }
    [MediaType::Json, MediaType::Protobuf]
        .into_iter()
        .find(|known| known.name() == text)
        .ok_or("must be application/vnd.kubernetes.protobuf or application/json")
}
