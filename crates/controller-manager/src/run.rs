//! The running program: clients, election, port, controller.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use statefulset_client::backoff::{Jitter as _, SeededJitter};
use statefulset_client::clock::{Clock, SystemClock};
use statefulset_client::config;
use statefulset_client::recorder::BroadcastRecorder;
use statefulset_client::rest::RestClient;
use statefulset_client::rest::api_health::ApiHealthLog;
use statefulset_controller::metrics::ControllerMetrics;
use statefulset_controller::{ControllerConfig, StatefulSetController};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::access::{Needs, wait_for_access};
use crate::clients::{CONTROLLER, Clients, service_account, user_agent};
use crate::leader_election::{Election, ElectionSeeds, lease};
use crate::metrics::{Metrics, Release, View};
use crate::options::Options;
use crate::secure_port::{SecurePort, Served, Shown};

/// The release whose behaviour the program has.
const RELEASE: Release = Release {
    major: 1,
    minor: 36,
    patch: 2,
};
/// How long the events that wait may take to be sent at the end.
const EVENT_FLUSH_MAX: Duration = Duration::from_secs(3);

/// Where the random parts of delays and names come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seeds {
    /// For informers and retries.
    pub(crate) controller: u64,
    /// For events.
    pub(crate) events: u64,
    /// For leader election.
    pub(crate) election: ElectionSeeds,
    /// For questions about users of the program's own endpoints.
    pub(crate) reviews: u64,
}

/// Runs until told to stop: waits for an API server that allows the work, then for the lease if
/// there is an election, and then runs the controller.
///
/// # Errors
///
/// An option or a file is of no use, the lease is lost, or the syncs in progress don't finish in
/// time.
pub(crate) async fn run(
    options: Options,
    shown: Shown,
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
        qps = options.qps,
        burst = options.burst,
        emulated_version = %options.feature_gates.emulation_version,
        feature_gates = ?options.feature_gates.entries(),
        "starting"
    );
    let features = options.feature_gates.features();
    let metrics = Metrics::new(RELEASE, &features, View::from(&options.metrics))?;
    let metrics = Arc::new(metrics);
    let api_health = Arc::new(ApiHealthLog::default());
    let counts = metrics.client(&server);
    let clients = Clients::new(&config, &options, counts, Arc::clone(&api_health));
    let election = if options.leader_election.leader_elect {
        Some(Election::new(
            &options.leader_election,
            options.feature_gates,
            clients.leader_election()?,
            seeds.election,
            Arc::clone(&metrics.leader_election),
        )?)
    } else {
        None
    };
    let informer_client = clients.informers()?;
    let fence = election.as_ref().map(Election::fence);
    let client = clients.controller(fence.as_ref(), &clock)?;
    let port = port
        .serve(
            &options,
            user_agent("authentication"),
            seeds.reviews,
            Arc::clone(&metrics),
            Arc::clone(&api_health),
        )
        .await?;
    let account = service_account(&options);
    let lease = election.as_ref().map(|_| lease(&options.leader_election));
    let needs = Needs {
        account: account.as_ref(),
        lease: lease.as_ref(),
    };
    let access = wait_for_access(&informer_client, &api_health, needs);
    if stop.run_until_cancelled(access).await.is_none() {
        port.close().await;
        return Ok(());
    }
    let clients = [informer_client, client];
    let families = metrics.controller.clone();
    let work = Box::pin(work(
        &options,
        seeds,
        clients,
        families,
        clock,
        &port,
        stop.clone(),
    ));
    let result = match election {
        Some(election) => {
            port.stands_by(election.health());
            election.run(&stop, work).await
        }
        None => work.await,
    };
    // Whoever has failed, or lost the lease, ends on the spot.
    if result.is_ok() {
        port.close().await;
    }
    result
}

/// Runs the controller with its events. The first client is that of the caches.
async fn work(
    options: &Options,
    seeds: Seeds,
    [informer_client, client]: [RestClient; 2],
    metrics: ControllerMetrics,
    clock: Arc<dyn Clock>,
    port: &Served,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (recorder, sink) = BroadcastRecorder::new(CONTROLLER, Arc::clone(&clock));
    let stop_events = CancellationToken::new();
    let mut events = JoinSet::new();
    events.spawn(sink.run(client.clone(), seeds.events, stop_events.clone()));
    let start_interval = jittered(options.start_interval, seeds.controller);
    if stop
        .run_until_cancelled(sleep(start_interval))
        .await
        .is_none()
    {
        return Ok(());
    }
    let config = ControllerConfig {
        informer_client,
        client,
        recorder: Arc::new(recorder),
        clock,
        feature_gates: options.feature_gates,
        concurrent_syncs: options.concurrent_syncs,
        resync_period: options.resync_period,
        seed: seeds.controller,
    };
    let controller = StatefulSetController::with_metrics(config, metrics);
    let synced = controller.has_synced();
    port.controller_runs(move || synced.get());
    let running = run_controller(controller, &mut events, stop, options.shutdown_timeout);
    let result = Box::pin(running).await;
    // The controller held the only recorder: without it the sink ends when nothing waits.
    if timeout(EVENT_FLUSH_MAX, events.join_next()).await.is_err() {
        tracing::warn!("some events could not be sent in time");
        stop_events.cancel();
    }
    result
}

/// Runs the controller until it is told to stop. Events are part of what it does: if their task
/// ends before, so does the program.
async fn run_controller(
    controller: StatefulSetController,
    events: &mut JoinSet<()>,
    stop: CancellationToken,
    shutdown_timeout: Option<Duration>,
) -> anyhow::Result<()> {
    let too_late = async {
        stop.cancelled().await;
        match shutdown_timeout {
            Some(timeout) => sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = controller.run(stop.clone()) => Ok(()),
        () = too_late => bail!("controller shutdown timeout reached"),
        _ = events.join_next() => bail!("the task that sends events has ended"),
    }
}

/// A duration stretched by a random factor of up to 2.
///
/// Upstream: `wait.Jitter` with `ControllerStartJitter`.
fn jittered(duration: Duration, seed: u64) -> Duration {
    duration.mul_f64(1.0 + SeededJitter::new(seed).fraction())
}
