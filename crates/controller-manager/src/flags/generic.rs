//! Flags that any controller manager has.

use std::time::Duration;

use clap::ArgAction;

use super::values::{self, Strings};

/// Upstream: `GenericControllerManagerConfigurationOptions`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Generic flags")]
pub(crate) struct GenericFlags {
    /// How often all cached objects are looked at again, stretched by a random factor of up to 2;
    /// 0s for never
    #[arg(long, value_name = "duration", default_value = "12h0m0s", value_parser = values::duration)]
    pub(crate) min_resync_period: Duration,

    /// Content type of requests to the API server. This program speaks JSON; the value
    /// application/vnd.kubernetes.protobuf is accepted, with a warning
    #[arg(long, value_name = "string", default_value = "application/json", value_parser = content_type)]
    pub(crate) kube_api_content_type: String,

    /// Requests to the API server a second, on average, of each client: informers have one, the
    /// controller and its events another. Negative for no limit
    #[arg(long, value_name = "float", default_value = "20", value_parser = values::float)]
    pub(crate) kube_api_qps: f64,

    /// Requests to the API server at once, of each client
    #[arg(long, value_name = "int", default_value = "30", value_parser = values::int)]
    pub(crate) kube_api_burst: i32,

    /// How long to wait before the controller starts, stretched by a random factor of up to 2
    #[arg(long, value_name = "duration", default_value = "0s", value_parser = values::duration)]
    pub(crate) controller_start_interval: Duration,

    /// How long the syncs in progress may take to finish when the program is told to stop; 0s for
    /// as long as they need
    #[arg(long, value_name = "duration", default_value = "10s", value_parser = values::duration)]
    pub(crate) controller_shutdown_timeout: Duration,

    /// Controllers to run: '*' for all, 'name' for that one, '-name' for all but that one. There
    /// is only statefulset-controller
    #[arg(long, value_name = "strings", default_value = "*", value_parser = values::strings)]
    pub(crate) controllers: Strings,

    /// Whether the controller writes as the service account kube-system/statefulset-controller,
    /// whose tokens it asks for with the credentials that it is given; caches and leader election
    /// use these themselves
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "false", value_parser = values::boolean)]
    pub(crate) use_service_account_credentials: bool,
}

/// The content type that kube-controller-manager uses by default.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The content type that this program uses.
const JSON: &str = "application/json";

fn content_type(text: &str) -> Result<String, &'static str> {
    match text {
        "" => Ok(JSON.to_owned()),
        JSON | PROTOBUF => Ok(text.to_owned()),
        _ => Err("must be application/json"),
    }
}
