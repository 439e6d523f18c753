//! The clients of the program: as whom each asks, what it calls itself, and its budget of requests.

use std::sync::Arc;

use statefulset_client::clock::Clock;
use statefulset_client::config::{
    ClientOptions, Config, ConfigError, client, client_of_service_account,
};
use statefulset_client::fence::Fence;
use statefulset_client::rest::RestClient;
use statefulset_client::rest::api_health::ApiHealthLog;
use statefulset_client::rest::metrics::ClientMetrics;
use statefulset_client::transport::{ServiceAccountName, ServiceAccountToken};

use crate::PROGRAM;
use crate::leader_election;
use crate::options::Options;

/// What the controller is called, and its service account.
pub(crate) const CONTROLLER: &str = "statefulset-controller";
/// Where the service accounts of controllers are. Upstream: `metav1.NamespaceSystem`.
const ACCOUNTS_NAMESPACE: &str = "kube-system";

/// Makes the clients. Each has its own connections and its own budget, so that a flood of lists
/// holds up no writes.
pub(crate) struct Clients<'a> {
    config: &'a Config,
    options: &'a Options,
    metrics: Arc<dyn ClientMetrics>,
    api_health: Arc<ApiHealthLog>,
}

impl<'a> Clients<'a> {
    /// Clients of the server of a configuration, which count here and tell this state.
    pub(crate) fn new(
        config: &'a Config,
        options: &'a Options,
        metrics: Arc<dyn ClientMetrics>,
        api_health: Arc<ApiHealthLog>,
    ) -> Self {
        Self {
            config,
            options,
            metrics,
            api_health,
        }
    }

    /// The one that has nothing to do but to keep the lease. How long its calls may take is the
    /// election's matter.
    pub(crate) fn leader_election(&self) -> Result<RestClient, ConfigError> {
        client(self.config, &self.options_of(leader_election::CLIENT_NAME))
    }

    /// The one that fills the caches.
    pub(crate) fn informers(&self) -> Result<RestClient, ConfigError> {
        client(self.config, &self.options_of("shared-informers"))
    }

    /// The one of the controller: its writes, its live reads and its events, all behind the fence.
    /// With `--use-service-account-credentials` it is a service account. Getting its tokens is a
    /// write too, made with the credentials of the configuration behind the same fence.
    ///
    /// Upstream: `createClientBuilders`.
    pub(crate) fn controller(
        &self,
        fence: Option<&Fence>,
        clock: &Arc<dyn Clock>,
    ) -> Result<RestClient, ConfigError> {
        let fenced = |part: &str| ClientOptions {
            fence: fence.cloned(),
            ..self.options_of(part)
        };
        let Some(account) = service_account(self.options) else {
            return client(self.config, &fenced(CONTROLLER));
        };
        let options = fenced(&account.user());
        let tokens = client(self.config, &fenced("service-account-token"))?;
        let token = ServiceAccountToken::new(tokens, account, Arc::clone(clock));
        client_of_service_account(self.config, token, &options)
    }

    /// How a client behaves; the part of the program is the end of its name.
    fn options_of(&self, part: &str) -> ClientOptions {
        ClientOptions {
            qps: self.options.qps,
            burst: self.options.burst,
            user_agent: user_agent(part),
            metrics: Arc::clone(&self.metrics),
            api_health: Arc::clone(&self.api_health),
            ..ClientOptions::default()
        }
    }
}

/// The service account that the controller is to be, if any.
pub(crate) fn service_account(options: &Options) -> Option<ServiceAccountName> {
    options
        .use_service_account_credentials
        .then(|| ServiceAccountName {
            namespace: ACCOUNTS_NAMESPACE.to_owned(),
            name: CONTROLLER.to_owned(),
        })
}

/// What a client calls itself, in the form that client-go uses.
pub(crate) fn user_agent(part: &str) -> String {
    let (version, os, arch) = (
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    );
    format!("{PROGRAM}/{version} ({os}/{arch}) {part}")
}

#[cfg(test)]
mod tests;
