//! Startup of the controller from its options.

use std::sync::Arc;
use std::time::Duration;

use statefulset_client::backoff::{Jitter as _, SeededJitter};
use statefulset_client::clock::{Clock, SystemClock};
use statefulset_client::config::{self, ConfigError};
use statefulset_client::fence::Fence;
use statefulset_client::rest::RestClient;
use statefulset_client::rest::api_health::ApiHealthLog;
use statefulset_controller::StatefulSetController;
use statefulset_controller::metrics::ControllerMetrics;
use statefulset_controller::shadow::{Journal, Shadow, ShadowSettings};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::access::{Needs, wait_for_access};
use crate::clients::{Clients, service_account, user_agent};
use crate::leader_election::{Election, ElectionSeeds, lease};
use crate::metrics::{Metrics, Release, View};
use crate::options::Options;
use crate::secure_port::{DebugState, SecurePort, Served};

/// Random seeds for delays and names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seeds {
    /// Seed for informers, retries and events.
    pub(crate) controller: u64,
    /// Seeds for leader election.
    pub(crate) election: ElectionSeeds,
    /// Seed for access reviews of the program's own endpoints.
    pub(crate) reviews: u64,
}

/// Runs until stopped: waits for an API server that grants the needed permissions, then for the
/// lease if leader election is on, and then runs the controller.
///
/// # Errors
///
/// An invalid option or file, a lost lease, or syncs in progress that don't finish in time.
pub(crate) async fn run(
    options: Options,
    shown: DebugState,
    seeds: Seeds,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let port = SecurePort::open(&options, shown, Arc::clone(&clock), &stop)?;
    for warning in &options.warnings {
        tracing::warn!("{warning}");
    }
    let config = config::load(&options.source).await?;
    let server = config.cluster_url.clone();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        %server,
        concurrent_syncs = options.concurrent_syncs,
        shard = options.shard.map(tracing::field::display),
        qps = options.qps,
        burst = options.burst,
        emulated_version = %options.feature_gates.emulation_version,
        feature_gates = ?options.feature_gates.entries(),
        "starting"
    );
    let features = options.feature_gates.features();
    let release = Release::at(options.feature_gates.emulation_version);
    let metrics = Metrics::new(release, &features, View::from(&options.metrics))?;
    let metrics = Arc::new(metrics);
    let api_health = Arc::new(ApiHealthLog::default());
    let counts = metrics.client(&server);
    let clients = Clients::new(&config, &options, counts, Arc::clone(&api_health));
    let journal = if options.shadow {
        Some(Journal::new(metrics.shadow()?))
    } else {
        None
    };
    let election = if options.leader_election.leader_elect && !options.shadow {
        Some(Election::new(
            &options.leader_election,
            options.shard,
            options.feature_gates,
            clients.leader_election()?,
            seeds.election,
            Arc::clone(&metrics.leader_election),
        )?)
    } else {
        None
    };
    let fence = election.as_ref().map(Election::fence);
    let new_informers = clients.new_informers();
    let clients = Connected::new(&clients, &options, fence.as_ref(), &clock)?;
    let port = port
        .serve(
            &options,
            user_agent("authentication"),
            seeds.reviews,
            Arc::clone(&metrics),
            Arc::clone(&api_health),
            journal.clone(),
        )
        .await?;
    let account = service_account(&options).filter(|_| !options.shadow);
    let lease = election
        .as_ref()
        .map(|_| lease(&options.leader_election, options.shard));
    let needs = Needs {
        account: account.as_ref(),
        lease: lease.as_ref(),
        shard: options.shard,
        namespace_selector: options.namespace_selector.as_ref(),
    };
    let access = wait_for_access(clients.informers(), &api_health, needs);
    if stop.run_until_cancelled(access).await.is_none() {
        port.close().await;
        return Ok(());
    }
    let parts = WorkParts {
        options: &options,
        seed: seeds.controller,
        metrics: metrics.of_controller(options.namespace_selector.is_some())?,
        clock,
        port: &port,
        new_informers: Box::new(new_informers),
    };
    let result = match (clients, election) {
        (Connected::Shadow(client), _) => {
            let journal = journal.unwrap_or_default();
            shadow(parts, &client, journal, stop).await
        }
        (Connected::Controller { informers, writes }, election) => {
            let work = Box::pin(work(parts, [informers, writes], stop.clone()));
            match election {
                Some(election) => {
                    port.stands_by(election.health());
                    election.run(&stop, work).await
                }
                None => work.await,
            }
        }
    };
    // After an error or a lost lease, exit immediately.
    if result.is_ok() {
        port.close().await;
    }
    result
}

/// The clients of the program's task.
enum Connected {
    /// One client that can only read.
    Shadow(RestClient),
    /// The controller's clients.
    Controller {
        /// Fills the caches.
        informers: RestClient,
        /// Writes, behind the fence.
        writes: RestClient,
    },
}

impl Connected {
    /// Creates the clients of the chosen task.
    fn new(
        clients: &Clients<'_>,
        options: &Options,
        fence: Option<&Fence>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, ConfigError> {
        if options.shadow {
            return Ok(Self::Shadow(clients.shadow()?));
        }
        Ok(Self::Controller {
            informers: clients.informers()?,
            writes: clients.controller(fence, clock)?,
        })
    }

    /// The client that fills the caches.
    fn informers(&self) -> &RestClient {
        match self {
            Self::Shadow(client) => client,
            Self::Controller { informers, .. } => informers,
        }
    }
}

/// Creates a client.
type NewClient = Box<dyn Fn() -> Result<RestClient, ConfigError> + Send + Sync>;

/// Dependencies of the program's task.
struct WorkParts<'a> {
    options: &'a Options,
    seed: u64,
    metrics: ControllerMetrics,
    clock: Arc<dyn Clock>,
    port: &'a Served,
    /// Creates clients for the informers of served namespaces.
    new_informers: NewClient,
}

/// Runs the controller with its events. The first client fills the caches.
async fn work(
    parts: WorkParts<'_>,
    [informer_client, client]: [RestClient; 2],
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let WorkParts { options, seed, .. } = parts;
    let start_interval = jittered(options.start_interval, seed);
    if stop
        .run_until_cancelled(sleep(start_interval))
        .await
        .is_none()
    {
        return Ok(());
    }
    let controller = StatefulSetController::builder_with_clients(informer_client, client)
        .clock(parts.clock)
        .feature_gates(options.feature_gates)
        .opt_in_defaults(options.opt_in_defaults.clone())
        .metrics(parts.metrics)
        .concurrent_syncs(options.concurrent_syncs)
        .resync_period(options.resync_period)
        .shutdown_timeout(options.shutdown_timeout)
        .seed(seed)
        .shard(options.shard);
    let controller = match &options.namespace_selector {
        None => controller,
        Some(selector) => {
            let controller = controller.namespace_selector(selector.clone());
            controller.informer_clients(parts.new_informers)
        }
    };
    let controller = controller.build()?;
    let synced = controller.has_synced();
    parts.port.controller_runs(move || synced.get());
    Ok(Box::pin(controller.run(stop.cancelled_owned())).await?)
}

/// Compares the decisions with those of another controller.
async fn shadow(
    parts: WorkParts<'_>,
    client: &RestClient,
    journal: Journal,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    tracing::info!("shadow: no lease, no writes, decisions are compared");
    let settings = ShadowSettings::default()
        .feature_gates(parts.options.feature_gates)
        .concurrent_syncs(parts.options.concurrent_syncs)
        .resync_period(parts.options.resync_period)
        .seed(parts.seed)
        .shard(parts.options.shard)
        .clock(parts.clock)
        .metrics(parts.metrics);
    let shadow = Shadow::new(client, settings, journal);
    let synced = shadow.has_synced();
    parts.port.controller_runs(move || synced.get());
    Ok(Box::pin(shadow.run(stop.cancelled_owned())).await?)
}

/// Multiplies a duration by a random factor from 1 to 2.
///
/// Upstream: `wait.Jitter` with `ControllerStartJitter`.
fn jittered(duration: Duration, seed: u64) -> Duration {
    duration.mul_f64(1.0 + SeededJitter::new(seed).fraction())
}
