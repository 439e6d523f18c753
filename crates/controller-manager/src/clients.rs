//! API clients of the program: credentials, user agents and rate limits.

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

use crate::leader_election;
use crate::options::Options;
use crate::program::PROGRAM;

/// Name of the controller and of its service account.
pub(crate) const CONTROLLER: &str = "statefulset-controller";
/// Namespace of the controllers' service accounts. Upstream: `metav1.NamespaceSystem`.
const ACCOUNTS_NAMESPACE: &str = "kube-system";

/// Factory for the clients. Each client has its own connections and its own rate limit, so that a
/// flood of lists delays no writes.
pub(crate) struct Clients<'a> {
    config: &'a Config,
    options: &'a Options,
    metrics: Arc<dyn ClientMetrics>,
    api_health: Arc<ApiHealthLog>,
}

impl<'a> Clients<'a> {
    /// Creates clients of the configured server that report to these metrics and this state.
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

    /// Client for the lease alone. Leader election sets the timeouts of its calls.
    pub(crate) fn leader_election(&self) -> Result<RestClient, ConfigError> {
        client(self.config, &self.options_of(leader_election::CLIENT_NAME))
    }

    /// Client that fills the caches.
    pub(crate) fn informers(&self) -> Result<RestClient, ConfigError> {
        client(self.config, &self.options_of("shared-informers"))
    }

    /// Creates further clients like [`Self::informers`], each with its own connection.
    pub(crate) fn new_informers(
        &self,
    ) -> impl Fn() -> Result<RestClient, ConfigError> + Send + Sync + 'static {
        let (config, options) = (self.config.clone(), self.options_of("shared-informers"));
        move || client(&config, &options)
    }

    /// Client of a shadow, which can only read.
    pub(crate) fn shadow(&self) -> Result<RestClient, ConfigError> {
        let options = self.options_of("shadow").read_only(true);
        client(self.config, &options)
    }

    /// Client of the controller for writes, live reads and events, all behind the fence. With
    /// `--use-service-account-credentials` it acts as a service account. Requesting its tokens is a
    /// write too: it uses the configured credentials behind the same fence.
    ///
    /// Upstream: `createClientBuilders`.
    pub(crate) fn controller(
        &self,
        fence: Option<&Fence>,
        clock: &Arc<dyn Clock>,
    ) -> Result<RestClient, ConfigError> {
        let fenced = |part: &str| self.options_of(part).fence(fence.cloned());
        let Some(account) = service_account(self.options) else {
            return client(self.config, &fenced(CONTROLLER));
        };
        let options = fenced(&account.user());
        let tokens = client(self.config, &fenced("service-account-token"))?;
        let token = ServiceAccountToken::new(tokens, account, Arc::clone(clock));
        client_of_service_account(self.config, token, &options)
    }

    /// Options of a client; `part` ends its user agent.
    fn options_of(&self, part: &str) -> ClientOptions {
        ClientOptions::default()
            .qps(self.options.qps)
            .burst(self.options.burst)
            .user_agent(user_agent(part))
            .media_type(self.options.media_type)
            .metrics(Arc::clone(&self.metrics))
            .api_health(Arc::clone(&self.api_health))
    }
}

/// Service account that the controller acts as, if any.
pub(crate) fn service_account(options: &Options) -> Option<ServiceAccountName> {
    options
        .use_service_account_credentials
        .then(|| ServiceAccountName::new(ACCOUNTS_NAMESPACE, CONTROLLER))
}

/// User agent in the format of client-go.
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
