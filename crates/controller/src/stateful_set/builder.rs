//! Construction of a controller, with upstream's defaults.

use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use statefulset_client::backoff::SeededJitter;
use statefulset_client::clock::{BootClock, Clock, SystemClock};
use statefulset_client::config::{self, ClientOptions};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::leaderelection::{
    ConfigError, ElectorParts, LeaderElectionConfig, LeaderElectionMetrics, LeaderElector,
    LeaseLock, LeaseName, NoopLeaderElectionMetrics,
};
use statefulset_client::recorder::{BroadcastRecorder, EventRecorder, NoopRecorder};
use statefulset_client::rest::RestClient;
use statefulset_client::workqueue::{RateLimiter, WorkQueue};

use super::{Events, StatefulSetController, SyncerParts};
use crate::informers::{InformerSettings, Informers};
use crate::metrics::ControllerMetrics;

/// The sets that are synced in parallel by default.
///
/// Upstream: `--concurrent-statefulset-syncs`.
pub const CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT: NonZeroUsize = NonZeroUsize::new(5).unwrap();

/// The default time between two resyncs.
///
/// Upstream: `--min-resync-period`.
pub const RESYNC_PERIOD_DEFAULT: Duration = Duration::from_secs(12 * 60 * 60);

/// The component that the built-in controller's events name.
const COMPONENT: &str = "statefulset-controller";

/// An election for the controller alone. The process ends when the lease is lost.
#[derive(Clone)]
pub struct LeaderElection {
    /// The lease.
    pub lease: LeaseName,
    /// The name of this process among the candidates; unique.
    pub identity: String,
    /// The times of the election.
    pub config: LeaderElectionConfig,
    /// Receives the measurements of the election.
    pub metrics: Arc<dyn LeaderElectionMetrics>,
}

impl LeaderElection {
    /// An election with upstream's times, not counted.
    pub fn new(lease: LeaseName, identity: impl Into<String>) -> Self {
        Self {
            lease,
            identity: identity.into(),
            config: LeaderElectionConfig::default(),
            metrics: Arc::new(NoopLeaderElectionMetrics),
        }
    }
}

/// An invalid choice of a [`Builder`].
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The times or the identity of the election are invalid.
    #[error("invalid leader election: {0}")]
    LeaderElection(#[from] ConfigError),
    /// The writes of clients that were handed in ready can't be fenced.
    #[error(
        "leader election needs a kube client to put its fence around; put the fence of your own \
         election into the client that writes"
    )]
    ElectionWithoutKubeClient,
}

/// The connection to the API server.
enum Connection {
    /// A client for all requests. Informers, writes and the lease each have these limits.
    Kube(kube::Client, Box<ClientOptions>),
    /// Ready clients.
    Rest {
        informers: RestClient,
        writes: RestClient,
    },
}

/// Builds a [`StatefulSetController`]. Each method changes one of upstream's defaults.
#[must_use = "nothing runs before the controller is built"]
pub struct Builder {
    connection: Connection,
    recorder: Option<Arc<dyn EventRecorder>>,
    metrics: ControllerMetrics,
    election: Option<LeaderElection>,
    clock: Arc<dyn Clock>,
    feature_gates: FeatureGates,
    concurrent_syncs: NonZeroUsize,
    resync_period: Option<Duration>,
    namespace: String,
    shutdown_timeout: Option<Duration>,
    seed: u64,
}

impl Builder {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self::connected(Connection::Kube(client, Box::default()))
    }

    pub(crate) fn with_clients(informers: RestClient, writes: RestClient) -> Self {
        Self::connected(Connection::Rest { informers, writes })
    }

    fn connected(connection: Connection) -> Self {
        Self {
            connection,
            recorder: None,
            metrics: ControllerMetrics::default(),
            election: None,
            clock: Arc::new(SystemClock),
            feature_gates: FeatureGates::default(),
            concurrent_syncs: CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT,
            resync_period: Some(RESYNC_PERIOD_DEFAULT),
            namespace: String::new(),
            shutdown_timeout: None,
            seed: RandomState::new().hash_one(COMPONENT),
        }
    }

    /// Limits, metrics and fence of the requests. The fence is that of your own election. No effect
    /// on ready clients.
    pub fn client_options(mut self, options: ClientOptions) -> Self {
        if let Connection::Kube(_, current) = &mut self.connection {
            **current = options;
        }
        self
    }

    /// Receives the events in place of the API server. [`NoopRecorder`] discards them.
    pub fn recorder(mut self, recorder: Arc<dyn EventRecorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Receives the measurements; by default nothing is counted.
    pub fn metrics(mut self, metrics: ControllerMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Competes for a lease, and syncs while this process holds it.
    pub fn leader_election(mut self, election: LeaderElection) -> Self {
        self.election = Some(election);
        self
    }

    /// Reads the time from another clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Switches features on and off.
    pub fn feature_gates(mut self, feature_gates: FeatureGates) -> Self {
        self.feature_gates = feature_gates;
        self
    }

    /// The number of sets that are synced in parallel.
    pub fn concurrent_syncs(mut self, concurrent_syncs: NonZeroUsize) -> Self {
        self.concurrent_syncs = concurrent_syncs;
        self
    }

    /// The time between two resyncs of all cached objects, stretched by a random factor of up to 2;
    /// `None` for no resync.
    pub fn resync_period(mut self, resync_period: Option<Duration>) -> Self {
        self.resync_period = resync_period;
        self
    }

    /// Serves the sets of one namespace; by default those of all namespaces. A Role in the namespace
    /// is then enough.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The time that syncs in progress get at shutdown; by default they finish, however long they
    /// take.
    ///
    /// Upstream: the flag `--controller-shutdown-timeout`.
    pub fn shutdown_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Fixes the random parts of delays, for reproducible runs.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Informers for the controller and for others in the process. Add handlers and keep indexers,
    /// pass them to [`Self::build_with_informers`], and run them.
    pub fn make_informers(&self) -> Informers {
        let settings = InformerSettings {
            namespace: &self.namespace,
            resync_period: self.resync_period,
            seed: self.seed,
        };
        Informers::new(&self.informer_client(), settings, &self.metrics)
    }

    fn informer_client(&self) -> RestClient {
        match &self.connection {
            Connection::Kube(client, options) => {
                let options = ClientOptions {
                    fence: None,
                    ..ClientOptions::clone(options)
                };
                config::around(client.clone(), &options)
            }
            Connection::Rest { informers, .. } => informers.clone(),
        }
    }

    /// Makes the controller, with informers of its own. Nothing happens until it runs. Needs a
    /// running tokio runtime.
    ///
    /// # Errors
    ///
    /// The leader election is invalid, or there is no kube client to put its fence around.
    ///
    /// Upstream: `NewStatefulSetController`, after the choices of the builder.
    pub fn build(self) -> Result<StatefulSetController, BuildError> {
        let mut informers = self.make_informers();
        let controller = self.build_with_informers(&mut informers)?;
        Ok(StatefulSetController {
            informers: Some(informers),
            ..controller
        })
    }

    /// Makes the controller over informers that the caller runs ([`Informers::run`]), so that other
    /// controllers of the process can share their caches: before the controller runs, or together
    /// with it, and for longer. Until it runs, changed sets wait in its queue.
    ///
    /// # Errors
    ///
    /// As for [`Self::build`].
    pub fn build_with_informers(
        self,
        informers: &mut Informers,
    ) -> Result<StatefulSetController, BuildError> {
        let election = self.election.as_ref();
        let elector = election.map(|it| self.elector(it)).transpose()?;
        let client = match &self.connection {
            Connection::Kube(client, options) => {
                let fence = elector.as_ref().map(LeaderElector::fence);
                let options = ClientOptions {
                    fence: fence.or_else(|| options.fence.clone()),
                    ..ClientOptions::clone(options)
                };
                config::around(client.clone(), &options)
            }
            Connection::Rest { writes, .. } => writes.clone(),
        };
        let (recorder, events) = if let Some(recorder) = self.recorder {
            (recorder, None)
        } else {
            let (recorder, sink) = BroadcastRecorder::new(COMPONENT, Arc::clone(&self.clock));
            let events = Events {
                sink,
                client: client.clone(),
                seed: self.seed.wrapping_add(5),
            };
            (Arc::new(recorder) as Arc<dyn EventRecorder>, Some(events))
        };
        let mut parts = SyncerParts::new(
            informers.caches(),
            &client,
            recorder,
            self.clock,
            Arc::new(SeededJitter::new(self.seed)),
            self.feature_gates,
        );
        parts.metrics = self.metrics.sets;
        let queue = WorkQueue::new(RateLimiter::default(), self.metrics.queue);
        let syncs = self.concurrent_syncs;
        let controller = StatefulSetController::new(parts, queue, informers, syncs);
        Ok(StatefulSetController {
            events,
            elector,
            shutdown_timeout: self.shutdown_timeout,
            ..controller
        })
    }

    fn elector(&self, election: &LeaderElection) -> Result<LeaderElector, BuildError> {
        let Connection::Kube(client, options) = &self.connection else {
            return Err(BuildError::ElectionWithoutKubeClient);
        };
        let options = ClientOptions {
            fence: None,
            ..ClientOptions::clone(options)
        };
        let LeaderElection {
            lease,
            identity,
            config,
            metrics,
        } = election.clone();
        // The lease has a client with limits of its own: its renewals wait for no other request.
        let client = config::around(client.clone(), &options);
        let parts = ElectorParts {
            lock: LeaseLock::new(client, lease, identity, Arc::new(NoopRecorder)),
            clock: Arc::clone(&self.clock),
            monotonic: Arc::new(BootClock),
            jitter: Arc::new(SeededJitter::new(self.seed.wrapping_add(6))),
            metrics,
        };
        Ok(LeaderElector::new(config, parts)?)
    }
}
