//! Life cycle of the program's own port: opened, served, closed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use statefulset_client::backoff::SeededJitter;
use statefulset_client::clock::Clock;
use statefulset_client::leaderelection::LeaderHealth;
use statefulset_client::rest::api_health::ApiHealthLog;
use statefulset_controller::shadow::Journal;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::configz::configz;
use crate::logging::SetVerbosity;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::program::PROGRAM;
use crate::serving::endpoints::{Endpoints, ShadowReport};
use crate::serving::health::{Health, HealthCheck};
use crate::serving::readiness::{Phase, Ping, Readiness};
use crate::serving::setup::{self, Opened, ServingDeps, ServingFlags};
use crate::serving::zpages::StatusPage;

/// Name of the check that reports a started controller.
const CONTROLLER: &str = "statefulset-controller";
/// Time limit for requests in progress on shutdown.
const CLOSING_MAX: Duration = Duration::from_secs(3);

/// Process state for the debugging endpoints.
pub(crate) struct DebugState {
    /// All flags, by name and value.
    pub(crate) flags: Vec<(String, String)>,
    /// Changes the log verbosity.
    pub(crate) set_verbosity: SetVerbosity,
}

/// The opened port, before it serves requests.
pub(crate) struct SecurePort {
    opened: Option<Opened>,
    shown: DebugState,
    clock: Arc<dyn Clock>,
    started: Timestamp,
    checks: Checks,
}

/// The served port; also used when no port is configured.
pub(crate) struct Served {
    checks: Checks,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

/// Health and readiness checks of the process.
#[derive(Clone, Default)]
struct Checks {
    health: Arc<Health>,
    readiness: Readiness,
}

/// Fails once a leader has been unable to renew its lease for too long.
///
/// Upstream: `HealthzAdaptor`.
struct Leader(LeaderHealth);

impl HealthCheck for Leader {
    fn name(&self) -> &'static str {
        "leaderElection"
    }

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }
}

impl SecurePort {
    /// Opens the port, so that a port conflict is reported before any other work; `stop` ends the
    /// process.
    ///
    /// # Errors
    ///
    /// The port is unavailable, or its certificates are invalid.
    pub(crate) fn open(
        options: &Options,
        shown: DebugState,
        clock: Arc<dyn Clock>,
        stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let checks = Checks::default();
        checks.readiness.add_to(&checks.health, stop.clone());
        Ok(Self {
            opened: setup::open(&options.secure_serving, &*clock)?,
            started: clock.now(),
            shown,
            clock,
            checks,
        })
    }

    /// Starts serving, whether or not the API server is reachable.
    ///
    /// # Errors
    ///
    /// Invalid authentication or authorization settings.
    pub(crate) async fn serve(
        self,
        options: &Options,
        user_agent: String,
        seed: u64,
        metrics: Arc<Metrics>,
        api_health: Arc<ApiHealthLog>,
        journal: Option<Journal>,
    ) -> anyhow::Result<Served> {
        let mut served = Served {
            checks: self.checks.clone(),
            tasks: JoinSet::new(),
            stop: CancellationToken::new(),
        };
        let Some(opened) = self.opened else {
            return Ok(served);
        };
        let set_verbosity = self.shown.set_verbosity;
        let families = Arc::clone(&metrics);
        let gates = options.feature_gates;
        let clock = Arc::clone(&self.clock);
        let shadow = journal.map(|journal| {
            let report = move |objects: bool| journal.report(clock.now(), objects);
            Box::new(report) as Box<ShadowReport>
        });
        let endpoints = Endpoints {
            health: Arc::clone(&self.checks.health),
            metrics: Box::new(move || families.gather()),
            configz: configz(options).to_string(),
            flagz: gates.component_flagz.then_some(self.shown.flags),
            statusz: gates.component_statusz.then(|| StatusPage {
                program: PROGRAM.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                emulated: gates.emulation_version.to_string(),
                started: self.started,
                clock: Arc::clone(&self.clock),
            }),
            program: PROGRAM.to_owned(),
            shadow,
            set_verbosity: options.debugging.profiling.then_some(set_verbosity),
        };
        let flags = ServingFlags {
            authentication: &options.authentication,
            authorization: &options.authorization,
        };
        let deps = ServingDeps {
            user_agent,
            proxy: options.source.proxy.clone(),
            client_metrics: Box::new(move |server| metrics.client(server)),
            source: options.source.clone(),
            api_health,
            clock: self.clock,
            jitter: Arc::new(SeededJitter::new(seed)),
        };
        let serving = opened.prepare(flags, deps, endpoints).await?;
        let address = serving.address()?;
        tracing::info!(%address, "serving health, metrics and configuration over TLS");
        served.tasks.spawn(serving.run(served.stop.clone()));
        Ok(served)
    }
}

impl Served {
    /// Records that the process waits for the lease; from now on a leader that doesn't renew is
    /// unhealthy.
    pub(crate) fn stands_by(&self, leader: LeaderHealth) {
        self.checks.readiness.enter(Phase::StandingBy);
        self.checks.health.add(Arc::new(Leader(leader)));
    }

    /// Records that the controller runs; `filled` reports whether its caches are filled.
    pub(crate) fn controller_runs(&self, filled: impl Fn() -> bool + Send + Sync + 'static) {
        self.checks
            .readiness
            .enter(Phase::Running(Arc::new(filled)));
        self.checks.health.add(Arc::new(Ping(CONTROLLER)));
    }

    /// Closes the port after the requests in progress.
    pub(crate) async fn close(mut self) {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(CLOSING_MAX, ended).await.is_err() {
            tracing::warn!("some requests to the secure port were cut off");
        }
    }
}
