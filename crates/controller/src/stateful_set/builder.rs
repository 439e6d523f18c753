//! The controller as its users see it, and its construction with upstream's defaults.

use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use statefulset_client::backoff::SeededJitter;
use statefulset_client::cache::informer::PAGE_SIZE_DEFAULT;
use statefulset_client::clock::{Clock, SystemClock};
use statefulset_client::config::{self, ClientOptions, ConfigError};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::fence::Fence;
use statefulset_client::leaderelection::{ElectorParts, LeaderElector, LeaderHealth, LeaseLock};
use statefulset_client::recorder::{BroadcastRecorder, EventRecorder};
use statefulset_client::rest::RestClient;
use statefulset_client::shard::Shard;
use statefulset_client::workqueue::{RateLimiter, WorkQueue};
use statefulset_fence::NamespaceSelector;
use statefulset_opt_ins::{OptInDefaults, SyncRules};
use tokio::sync::watch;

use super::connection::{BuildError, Connection, LeaderElection};
use super::election::Election;
use super::events::Events;
use super::served::{NewClient, ServedWork, SyncSettings, WatchClients};
use super::{ControllerParts, SyncerParts, WholeWork, Work};
use crate::error::RunError;
use crate::informers::{HasSynced, InformerScope, InformerSettings, Informers};
use crate::metrics::ControllerMetrics;

/// Default number of sets that are synced in parallel.
///
/// Upstream: `--concurrent-statefulset-syncs`.
pub const CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT: NonZeroUsize = NonZeroUsize::new(5).unwrap();

/// Default time between two resyncs.
///
/// Upstream: `--min-resync-period`.
pub const RESYNC_PERIOD_DEFAULT: Duration = Duration::from_secs(12 * 60 * 60);

/// Component name in the built-in controller's events.
const COMPONENT: &str = "statefulset-controller";

/// The StatefulSet controller. Created by [`Self::builder`].
///
/// # Caveats
///
/// Two controllers on one cluster conflict: run one, or elect a leader.
///
/// Upstream: `StatefulSetController`.
pub struct StatefulSetController(ControllerParts);

impl StatefulSetController {
    /// Returns a builder with upstream's defaults for the cluster of this configuration:
    ///
    /// ```no_run
    /// # use statefulset_controller::StatefulSetController;
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = kube::Config::infer().await?;
    /// let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    /// StatefulSetController::builder(config).build()?.run(shutdown).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Informers, writes and the lease have separate connections: HTTP/2 with pings, renewed
    /// credentials, no retries besides the controller's, and a fence that also checks the bytes of a
    /// request that already waits for its connection.
    pub fn builder(config: kube::Config) -> Builder {
        Builder::new(config)
    }

    /// Returns a builder for a kube client with its own transport, such as that of a test server in
    /// this process. Prefer [`Self::builder`].
    ///
    /// # Caveats
    ///
    /// The fence checks a request only before it is sent. Disable the retries of a client that kube
    /// makes (`default_retry`): they come after the fence, and would repeat a write after the lease is
    /// lost.
    pub fn builder_with_kube_client(client: kube::Client) -> Builder {
        Builder::with_kube_client(client)
    }

    /// Returns a builder for ready-made clients: one lists and watches, one reads live and writes.
    /// Limits, metrics and fence are the clients' own settings, so [`Builder::build`] refuses
    /// [`Builder::client_options`] and [`Builder::leader_election`].
    pub fn builder_with_clients(informers: RestClient, writes: RestClient) -> Builder {
        Builder::with_clients(informers, writes)
    }

    /// Returns a check for filled caches, also valid while the controller runs.
    pub fn has_synced(&self) -> HasSynced {
        self.0.synced.clone()
    }

    /// Returns a check that this process leads and renews its lease; `None` without an election.
    pub fn leader_health(&self) -> Option<LeaderHealth> {
        self.0.election.as_ref().map(|it| it.elector.health())
    }

    /// Runs until `shutdown` completes: waits for the lease, fills the caches, then syncs. At
    /// shutdown it finishes the running syncs, sends queued events for at most three seconds, drops
    /// queued sets, and keeps the lease meanwhile.
    ///
    /// Lists again for caches that are already filled, so that no sync decides on a cache older than
    /// an earlier leader's writes. Dropping the future stops everything at the next await point.
    ///
    /// # Errors
    ///
    /// The lease was lost, shared informers stopped, the shutdown timed out, or a task panicked. A
    /// panic in a sync is only that set's error.
    ///
    /// Upstream: `Run`.
    pub fn run(
        self,
        shutdown: impl Future<Output = ()>,
    ) -> impl Future<Output = Result<(), RunError>> {
        self.0.run(shutdown)
    }
}

/// The parts of a controller that connect it.
struct Connected {
    election: Option<Election>,
    client: RestClient,
    recorder: Arc<dyn EventRecorder>,
    events: Option<Events>,
}

/// A controller without its work.
struct Built {
    events: Option<Events>,
    election: Option<Election>,
    shutdown_timeout: Option<Duration>,
    synced: HasSynced,
}

impl Built {
    fn with_work(self, work: Work) -> StatefulSetController {
        StatefulSetController(ControllerParts {
            events: self.events,
            election: self.election,
            shutdown_timeout: self.shutdown_timeout,
            synced: self.synced,
            work,
        })
    }
}

/// Builds a [`StatefulSetController`]. Each method overrides one of upstream's defaults.
#[must_use = "nothing runs before the controller is built"]
pub struct Builder {
    connection: Connection,
    client_options: Option<Box<ClientOptions>>,
    recorder: Option<Arc<dyn EventRecorder>>,
    metrics: ControllerMetrics,
    election: Option<LeaderElection>,
    clock: Arc<dyn Clock>,
    rules: SyncRules,
    concurrent_syncs: NonZeroUsize,
    resync_period: Option<Duration>,
    page_size: u32,
    namespace: String,
    namespace_selector: Option<NamespaceSelector>,
    informer_clients: Option<NewClient>,
    shard: Option<Shard>,
    shutdown_timeout: Option<Duration>,
    seed: u64,
}

impl Builder {
    pub(crate) fn new(config: kube::Config) -> Self {
        Self::connected(Connection::Config(Box::new(config)))
    }

    pub(crate) fn with_kube_client(client: kube::Client) -> Self {
        Self::connected(Connection::Kube(client))
    }

    pub(crate) fn with_clients(informers: RestClient, writes: RestClient) -> Self {
        Self::connected(Connection::Ready { informers, writes })
    }

    fn connected(connection: Connection) -> Self {
        Self {
            connection,
            client_options: None,
            recorder: None,
            metrics: ControllerMetrics::default(),
            election: None,
            clock: Arc::new(SystemClock),
            rules: SyncRules::default(),
            concurrent_syncs: CONCURRENT_STATEFUL_SET_SYNCS_DEFAULT,
            resync_period: Some(RESYNC_PERIOD_DEFAULT),
            page_size: PAGE_SIZE_DEFAULT,
            namespace: String::new(),
            namespace_selector: None,
            informer_clients: None,
            shard: None,
            shutdown_timeout: None,
            seed: RandomState::new().hash_one(COMPONENT),
        }
    }

    /// Sets the limits, metrics and fence of the requests. The fence belongs to your own election, so
    /// [`Self::build`] refuses it next to [`Self::leader_election`].
    pub fn client_options(mut self, options: ClientOptions) -> Self {
        self.client_options = Some(Box::new(options));
        self
    }

    /// Sends the events, also those of the leader election, to this recorder instead of the API
    /// server. [`NoopRecorder`](statefulset_client::recorder::NoopRecorder) discards them.
    pub fn recorder(mut self, recorder: Arc<dyn EventRecorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Receives the measurements; the default discards them.
    pub fn metrics(mut self, metrics: ControllerMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Competes for a lease and syncs while this process holds it.
    pub fn leader_election(mut self, election: LeaderElection) -> Self {
        self.election = Some(election);
        self
    }

    /// Reads the time from another clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Enables and disables features.
    pub fn feature_gates(mut self, feature_gates: FeatureGates) -> Self {
        self.rules.gates = feature_gates;
        self
    }

    /// Opt-ins beyond upstream, of sets that make no choice. Needs the feature gate of
    /// each choice. None by default.
    pub fn opt_in_defaults(mut self, defaults: OptInDefaults) -> Self {
        self.rules.opt_in_defaults = defaults;
        self
    }

    /// Sets the number of sets that are synced in parallel.
    pub fn concurrent_syncs(mut self, concurrent_syncs: NonZeroUsize) -> Self {
        self.concurrent_syncs = concurrent_syncs;
        self
    }

    /// Sets the time between two resyncs of all cached objects, multiplied by a random factor
    /// between 1 and 2; `None` disables resyncs.
    pub fn resync_period(mut self, resync_period: Option<Duration>) -> Self {
        self.resync_period = resync_period;
        self
    }

    /// Sets the maximum number of objects per page of a list; 0 counts as 1. The informers request
    /// fewer where a page would become too large for the server.
    pub fn page_size(mut self, page_size: u32) -> Self {
        self.page_size = page_size;
        self
    }

    /// Limits the controller to the sets of one namespace, for which a Role in the namespace
    /// suffices; the default is all namespaces.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Limits the controller to the namespaces with a label, which may come and go, behind the
    /// [fence](statefulset_fence): nothing is written in a namespace before the policies are seen to
    /// be in force there. Each namespace has its own informers.
    pub fn namespace_selector(mut self, selector: NamespaceSelector) -> Self {
        self.namespace_selector = Some(selector);
        self
    }

    /// Creates the clients of the served namespaces' informers, for ready-made clients: 20 namespaces
    /// share one. Without it, all share the one client, whose connection may allow too few streams.
    /// Needs [`Self::namespace_selector`].
    pub fn informer_clients(
        mut self,
        new: impl Fn() -> Result<RestClient, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.informer_clients = Some(Arc::new(new));
        self
    }

    /// Limits the controller to the namespaces of one shard; the default is all namespaces. Each
    /// shard needs its own controller, with its own lease.
    pub fn shard(mut self, shard: Option<Shard>) -> Self {
        self.shard = shard;
        self
    }

    /// Sets the time limit of running syncs at shutdown; by default they may run as long as they
    /// need.
    ///
    /// Upstream: `--controller-shutdown-timeout`, a flag of the program.
    pub fn shutdown_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Fixes the seed of random delays, for reproducible runs.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Creates informers for the controller and others in the process. Add handlers and keep
    /// indexers, pass them to [`Self::build_with_informers`], and run them.
    ///
    /// # Errors
    ///
    /// The configuration gives no client.
    pub fn make_informers(&self) -> Result<Informers, BuildError> {
        let client = match &self.connection {
            Connection::Ready { informers, .. } => informers.clone(),
            _ => self.client(None)?,
        };
        let settings = InformerSettings {
            scope: self.informer_scope(),
            page_size: self.page_size,
            seed: self.seed,
        };
        Ok(Informers::new(&client, settings, &self.metrics))
    }

    fn informer_scope(&self) -> InformerScope {
        InformerScope {
            namespace: self.namespace.clone(),
            shard: self.shard,
            resync_period: self.resync_period,
        }
    }

    /// Creates a client with the options and this fence.
    fn client(&self, fence: Option<Fence>) -> Result<RestClient, BuildError> {
        let options = self.client_options.as_deref().cloned();
        self.connection
            .client(&options.unwrap_or_default().fence(fence))
    }

    /// Builds the controller, with its own informers. It does nothing until it runs. Requires a
    /// running tokio runtime.
    ///
    /// # Errors
    ///
    /// The configuration or the leader election is invalid, ready-made clients can't do what the
    /// builder should do, or two settings exclude each other.
    ///
    /// Upstream: `NewStatefulSetController`, after the choices of the builder.
    pub fn build(self) -> Result<StatefulSetController, BuildError> {
        if let Some(selector) = self.namespace_selector.clone() {
            return self.build_served(selector);
        }
        let mut informers = self.make_informers()?;
        let (parts, mut work) = self.build_whole(&mut informers)?;
        work.informers = Some(informers);
        Ok(parts.with_work(Work::Whole(Box::new(work))))
    }

    /// Builds the controller with informers that the caller runs ([`Informers::run`]), so that
    /// other controllers of the process can share their caches. They can start before the
    /// controller or with it, and must stop after it. Until the controller runs, changed sets wait
    /// in its queue.
    ///
    /// # Errors
    ///
    /// Those of [`Self::build`], and the informers have another namespace, shard or resync period than
    /// this builder.
    pub fn build_with_informers(
        self,
        informers: &mut Informers,
    ) -> Result<StatefulSetController, BuildError> {
        if self.namespace_selector.is_some() {
            return Err(BuildError::SelectorWithOtherScope);
        }
        if let Some(setting) = self.informer_scope().difference(informers.scope()) {
            return Err(BuildError::InformersOfAnotherScope { setting });
        }
        let (parts, work) = self.build_whole(informers)?;
        Ok(parts.with_work(Work::Whole(Box::new(work))))
    }

    fn build_whole(self, informers: &mut Informers) -> Result<(Built, WholeWork), BuildError> {
        let connected = self.connect()?;
        let mut parts = SyncerParts::new(
            informers.caches(),
            &connected.client,
            connected.recorder,
            self.clock,
            Arc::new(SeededJitter::new(self.seed)),
            self.rules,
        );
        parts.metrics = self.metrics.sets;
        let queue = WorkQueue::new(RateLimiter::default(), self.metrics.queue);
        let work = WholeWork::new(parts, queue, informers, self.concurrent_syncs);
        let built = Built {
            events: connected.events,
            election: connected.election,
            shutdown_timeout: self.shutdown_timeout,
            synced: informers.has_synced(),
        };
        Ok((built, work))
    }

    fn build_served(
        self,
        selector: NamespaceSelector,
    ) -> Result<StatefulSetController, BuildError> {
        if !self.namespace.is_empty() || self.shard.is_some() {
            return Err(BuildError::SelectorWithOtherScope);
        }
        let connected = self.connect()?;
        let ready = watch::Sender::new(false);
        let built = Built {
            events: connected.events,
            election: connected.election,
            shutdown_timeout: self.shutdown_timeout,
            synced: HasSynced::of([ready.subscribe()]),
        };
        let clients = self.informer_clients.clone();
        let clients = clients.unwrap_or_else(|| self.new_informer_client());
        let queue_metrics = Arc::clone(&self.metrics.queue);
        let work = ServedWork {
            selector,
            clients: WatchClients::new(clients),
            writes: connected.client,
            settings: SyncSettings {
                queue: WorkQueue::new(RateLimiter::default(), queue_metrics),
                recorder: connected.recorder,
                clock: self.clock,
                jitter: Arc::new(SeededJitter::new(self.seed)),
                rules: self.rules,
                metrics: self.metrics,
                resync_period: self.resync_period,
                page_size: self.page_size,
                seed: self.seed,
            },
            concurrent_syncs: self.concurrent_syncs,
            ready,
        };
        Ok(built.with_work(Work::Served(Box::new(work))))
    }

    /// Returns a function that creates a client without a fence, with its own connection if the
    /// configuration is known.
    fn new_informer_client(&self) -> NewClient {
        let options = self.client_options.as_deref().cloned();
        let options = options.unwrap_or_default().fence(None);
        match &self.connection {
            Connection::Config(config) => {
                let config = config.clone();
                Arc::new(move || config::client(&config, &options))
            }
            Connection::Kube(client) => {
                let client = client.clone();
                Arc::new(move || Ok(config::around(client.clone(), &options)))
            }
            Connection::Ready { informers, .. } => {
                let client = informers.clone();
                Arc::new(move || Ok(client.clone()))
            }
        }
    }

    /// Checks that no setting is without effect.
    fn check(&self) -> Result<(), BuildError> {
        if matches!(self.connection, Connection::Ready { .. }) {
            if self.election.is_some() {
                return Err(BuildError::ElectionOfReadyClients);
            }
            if self.client_options.is_some() {
                return Err(BuildError::OptionsOfReadyClients);
            }
        }
        if self.election.is_some() && self.own_fence().is_some() {
            return Err(BuildError::FenceWithElection);
        }
        if self.informer_clients.is_some() && self.namespace_selector.is_none() {
            return Err(BuildError::InformerClientsWithoutSelector);
        }
        Ok(())
    }

    /// Returns the fence of the caller's election.
    fn own_fence(&self) -> Option<Fence> {
        self.client_options.as_ref()?.fence.clone()
    }

    /// Creates the election, the client that writes, and the recorder.
    fn connect(&self) -> Result<Connected, BuildError> {
        self.check()?;
        let election = self.election.as_ref();
        let election = election.map(|it| self.elector(it)).transpose()?;
        let fence = election.as_ref().map(|it| it.elector.fence());
        let client = self.client(fence.or_else(|| self.own_fence()))?;
        let (recorder, events) = self.recorder_of(&client, 5);
        Ok(Connected {
            election,
            client,
            recorder,
            events,
        })
    }

    fn elector(&self, election: &LeaderElection) -> Result<Election, BuildError> {
        let LeaderElection {
            lease,
            identity,
            config,
            monotonic,
            metrics,
        } = election.clone();
        // The lease has a client with separate limits, so its renewals wait for no other request.
        let client = self.client(None)?;
        let (recorder, events) = self.recorder_of(&client, 7);
        let lock = LeaseLock::new(client, lease, identity, recorder);
        let jitter = Arc::new(SeededJitter::new(self.seed.wrapping_add(6)));
        let parts = ElectorParts::new(lock, jitter)
            .clock(Arc::clone(&self.clock))
            .monotonic(monotonic)
            .metrics(metrics);
        let elector = LeaderElector::new(config, parts)?;
        Ok(Election { elector, events })
    }

    /// Returns the recorder of the caller; otherwise one that sends its events with this client.
    fn recorder_of(
        &self,
        client: &RestClient,
        seed: u64,
    ) -> (Arc<dyn EventRecorder>, Option<Events>) {
        if let Some(recorder) = &self.recorder {
            return (Arc::clone(recorder), None);
        }
        let (recorder, sink) = BroadcastRecorder::new(COMPONENT, Arc::clone(&self.clock));
        let events = Events {
            sink,
            client: client.clone(),
            seed: self.seed.wrapping_add(seed),
        };
        (Arc::new(recorder), Some(events))
    }
}
