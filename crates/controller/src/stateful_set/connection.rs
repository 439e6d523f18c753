//! The connection of a controller to the API server, and its leader election.

use std::sync::Arc;

use statefulset_client::clock::{BootClock, MonotonicClock};
use statefulset_client::config::{self, ClientOptions};
use statefulset_client::leaderelection::{
    ConfigError, LeaderElectionConfig, LeaderElectionMetrics, LeaseName, NoopLeaderElectionMetrics,
};
use statefulset_client::rest::RestClient;

/// A leader election for the controller only. The process must exit when the lease is lost.
#[derive(Clone)]
#[non_exhaustive]
pub struct LeaderElection {
    /// The lease.
    pub lease: LeaseName,
    /// Unique name of this process among the candidates.
    pub identity: String,
    /// Durations of the election.
    pub config: LeaderElectionConfig,
    /// Clock for the lease's expiry and the fence's deadline.
    pub monotonic: Arc<dyn MonotonicClock>,
    /// Receives the election's measurements.
    pub metrics: Arc<dyn LeaderElectionMetrics>,
}

impl LeaderElection {
    /// Creates an election with upstream's durations and without metrics.
    pub fn new(lease: LeaseName, identity: impl Into<String>) -> Self {
        Self {
            lease,
            identity: identity.into(),
            config: LeaderElectionConfig::default(),
            monotonic: Arc::new(BootClock),
            metrics: Arc::new(NoopLeaderElectionMetrics),
        }
    }

    /// Sets the durations of the election.
    #[must_use]
    pub fn config(mut self, config: LeaderElectionConfig) -> Self {
        self.config = config;
        self
    }

    /// Reads the lease's expiry and the fence's deadline from another clock.
    #[must_use]
    pub fn monotonic(mut self, clock: Arc<dyn MonotonicClock>) -> Self {
        self.monotonic = clock;
        self
    }

    /// Sends the election's measurements to this receiver.
    #[must_use]
    pub fn metrics(mut self, metrics: Arc<dyn LeaderElectionMetrics>) -> Self {
        self.metrics = metrics;
        self
    }
}

/// An invalid setting of a [`Builder`](super::Builder).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The durations or the identity of the election are invalid.
    #[error("invalid leader election: {0}")]
    LeaderElection(#[from] ConfigError),
    /// The configuration doesn't give a client.
    #[error("{0}")]
    Client(#[from] config::ConfigError),
    /// Ready-made clients can't be fenced.
    #[error(
        "leader election can't fence ready-made clients; build the controller from a kube::Config, \
         or fence the client that writes with your own election"
    )]
    ElectionOfReadyClients,
    /// Ready-made clients have their own options.
    #[error(
        "client options don't apply to ready-made clients; set them where the clients are made, or \
         build the controller from a kube::Config"
    )]
    OptionsOfReadyClients,
    /// Each served namespace has informers of its own.
    #[error("a namespace selector excludes shared informers, a single namespace and a shard")]
    SelectorWithOtherScope,
    /// An election has its own fence.
    #[error(
        "leader election has a fence of its own, so the one in the client options would have no \
         effect; remove that, or remove leader_election and run the controller in your own election"
    )]
    FenceWithElection,
    /// Only served namespaces have clients of their own.
    #[error(
        "informer_clients has no effect without a namespace selector; set namespace_selector, or pass \
         the informers' client to builder_with_clients"
    )]
    InformerClientsWithoutSelector,
    /// The informers would show other objects, or show them at other times.
    #[error(
        "the informers have another {setting} than this builder; make them with make_informers of a \
         builder with the same settings"
    )]
    InformersOfAnotherScope {
        /// The setting that differs.
        setting: &'static str,
    },
}

/// Connection to the API server.
pub(super) enum Connection {
    /// Informers, writes and the lease each get a client with its own connections and limits.
    Config(Box<kube::Config>),
    /// The three share the connections of one client, each with its own limits.
    Kube(kube::Client),
    /// Ready-made clients.
    Ready {
        informers: RestClient,
        writes: RestClient,
    },
}

impl Connection {
    /// Creates a client with these options; ready-made ones have their own.
    pub(super) fn client(&self, options: &ClientOptions) -> Result<RestClient, BuildError> {
        match self {
            Self::Config(config) => Ok(config::client(config, options)?),
            Self::Kube(client) => Ok(config::around(client.clone(), options)),
            Self::Ready { writes, .. } => Ok(writes.clone()),
        }
    }
}
