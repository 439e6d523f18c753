//! The election, from the first attempt to the end of the work.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::candidate::{Candidate, Try};
use super::config::{ConfigError, JITTER_FACTOR, LeaderElectionConfig};
use super::health::LeaderHealth;
use super::lock::LeaseLock;
use super::metrics::{LeaderElectionMetrics, NoopLeaderElectionMetrics};
use super::shared::Shared;
use crate::backoff::Jitter;
use crate::clock::{BootClock, Clock, MonotonicClock, SystemClock};
use crate::fault_log::FaultLog;
use crate::fence::Fence;

/// Dependencies of an elector.
#[non_exhaustive]
pub struct ElectorParts {
    /// The lease to compete for.
    pub lock: LeaseLock,
    /// Clock for the times in the lease.
    pub clock: Arc<dyn Clock>,
    /// Clock for the lease's expiry and the fence's deadline.
    pub monotonic: Arc<dyn MonotonicClock>,
    /// Source of the random part of retry waits.
    pub jitter: Arc<dyn Jitter>,
    /// Receives the metrics.
    pub metrics: Arc<dyn LeaderElectionMetrics>,
}

impl ElectorParts {
    /// Creates the dependencies with the system's clocks and without metrics. `jitter` spreads the
    /// retries of the candidates, so each process needs another seed.
    pub fn new(lock: LeaseLock, jitter: Arc<dyn Jitter>) -> Self {
        Self {
            lock,
            clock: Arc::new(SystemClock),
            monotonic: Arc::new(BootClock),
            jitter,
            metrics: Arc::new(NoopLeaderElectionMetrics),
        }
    }

    /// Reads the times for the lease from another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Reads the lease's expiry and the fence's deadline from another clock.
    #[must_use]
    pub fn monotonic(mut self, clock: Arc<dyn MonotonicClock>) -> Self {
        self.monotonic = clock;
        self
    }

    /// Sends the metrics to this receiver.
    #[must_use]
    pub fn metrics(mut self, metrics: Arc<dyn LeaderElectionMetrics>) -> Self {
        self.metrics = metrics;
        self
    }
}

/// Competes for a lease, and renews it while the work runs.
///
/// Upstream: `LeaderElector`.
pub struct LeaderElector {
    candidate: Candidate,
    jitter: Arc<dyn Jitter>,
}

/// The result of an election.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended<T> {
    /// Cancelled before this process led.
    NeverLed,
    /// The lease was lost, and the work was dropped immediately.
    Lost(Lost),
    /// The work has ended with this result.
    Finished(T),
}

/// The way the lease was lost. Formats as part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// The lease could not be renewed in time.
    NotRenewed {
        /// The time limit.
        within: Duration,
    },
    /// Another process has taken the lease.
    Taken {
        /// The current holder; empty if it has released the lease.
        holder: String,
    },
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRenewed { within } => write!(f, "it could not be renewed within {within:?}"),
            Self::Taken { holder } if holder.is_empty() => {
                f.write_str("another process took and then released it")
            }
            Self::Taken { holder } => write!(f, "{holder:?} has taken it"),
        }
    }
}

impl Error for Lost {}

impl LeaderElector {
    /// Creates an elector that does nothing until it is run.
    ///
    /// Upstream: `NewLeaderElector`.
    pub fn new(config: LeaderElectionConfig, parts: ElectorParts) -> Result<Self, ConfigError> {
        config.validate()?;
        let ElectorParts {
            lock,
            clock,
            monotonic,
            jitter,
            metrics,
        } = parts;
        if lock.identity().is_empty() {
            return Err(ConfigError::NoIdentity);
        }
        let lock = lock.with_call_timeout(config.request_timeout());
        let name = lock.at().name.clone();
        metrics.master_status(&name, false);
        let shared = Shared {
            name,
            identity: lock.identity().to_owned(),
            lease_duration: config.lease_duration,
            clock: Arc::clone(&monotonic),
            observed: Mutex::default(),
        };
        let candidate = Candidate {
            config,
            lock,
            metrics,
            fence: Fence::new(monotonic).with_transit_max(config.transit_max()),
            clock,
            shared: Arc::new(shared),
            failure: FaultLog::default(),
        };
        Ok(Self { candidate, jitter })
    }

    /// Returns the fence that allows writes while this elector leads.
    pub fn fence(&self) -> Fence {
        self.candidate.fence.clone()
    }

    /// Returns the health check of this elector.
    pub fn health(&self) -> LeaderHealth {
        LeaderHealth {
            shared: Arc::clone(&self.candidate.shared),
        }
    }

    /// Acquires the lease, then runs the work while it holds the lease. Losing the lease drops the
    /// work, so every task that it spawns must end with it. After `cancelled` the work should end
    /// by itself; the lease is kept until then.
    ///
    /// After a lost lease the process should exit: its caches may have missed the next leader's
    /// writes.
    ///
    /// Upstream: `LeaderElector.Run`.
    pub async fn run<T>(
        mut self,
        cancelled: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> Ended<T> {
        let lock = self.candidate.lock.at().clone();
        let name = lock.name.clone();
        tracing::info!(%lock, identity = self.candidate.lock.identity(), "attempting to acquire the leader lease");
        if cancelled
            .run_until_cancelled(self.acquire())
            .await
            .is_none()
        {
            return Ended::NeverLed;
        }
        self.candidate.lock.record_event("became leader");
        self.candidate.metrics.master_status(&name, true);
        tracing::info!(%lock, "successfully acquired the lease");
        let fence = self.fence();
        let ended = {
            tokio::pin!(work);
            tokio::select! {
                biased;
                lost = self.renew() => Ended::Lost(lost),
                output = work => Ended::Finished(output),
            }
        };
        fence.close();
        self.candidate.metrics.master_status(&name, false);
        match &ended {
            Ended::Lost(lost) => tracing::error!(%lock, "failed to renew the lease: {lost}"),
            Ended::Finished(_) if self.candidate.config.release_on_cancel => {
                self.release_if_quiet().await;
            }
            _ => {}
        }
        self.candidate.lock.record_event("stopped leading");
        ended
    }

    /// Retries until this process holds the lease.
    ///
    /// Upstream: `acquire`.
    async fn acquire(&mut self) {
        while self.candidate.try_acquire_or_renew(false).await != Try::Held {
            let share = JITTER_FACTOR * self.jitter.fraction();
            sleep(self.candidate.config.retry_period.mul_f64(1.0 + share)).await;
        }
    }

    /// Renews the lease until it is lost.
    ///
    /// Upstream: `renew`.
    async fn renew(&mut self) -> Lost {
        loop {
            let within = self.candidate.config.renew_deadline;
            let deadline = Instant::now() + within;
            // Poll the deadline first: a renewal that completes at the deadline is too late.
            let lost = tokio::select! {
                biased;
                () = sleep_until(deadline) => Some(Lost::NotRenewed { within }),
                lost = self.renew_once() => lost,
            };
            if let Some(lost) = lost {
                return lost;
            }
            tracing::trace!(lock = %self.candidate.lock.at(), "successfully renewed the lease");
            sleep(self.candidate.config.retry_period).await;
        }
    }

    /// Attempts immediately and then every retry period, until the lease is renewed or taken by a
    /// rival.
    async fn renew_once(&mut self) -> Option<Lost> {
        let mut ticks = interval(self.candidate.config.retry_period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            match self.candidate.try_acquire_or_renew(true).await {
                Try::Held => return None,
                Try::Failed => {}
                Try::Taken { holder } => return Some(Lost::Taken { holder }),
            }
        }
    }

    /// Releases the lease, unless a write of this process may still take effect. In that case the
    /// lease must expire, as after a crash during that write.
    async fn release_if_quiet(&mut self) {
        if self
            .candidate
            .fence
            .is_quiet_for(self.candidate.config.lease_duration)
        {
            self.release_in_time().await;
        } else {
            tracing::info!(lock = %self.candidate.lock.at(), "letting the lease expire, because a write without a response, or with a 5xx, may still take effect");
        }
    }

    async fn release_in_time(&mut self) {
        let within = self.candidate.config.renew_deadline;
        match timeout(within, self.candidate.release()).await {
            Ok(Ok(())) => tracing::info!(lock = %self.candidate.lock.at(), "released the lease"),
            Ok(Err(error)) => {
                tracing::warn!(lock = %self.candidate.lock.at(), "failed to release the lease: {error}");
            }
            Err(_) => {
                tracing::warn!(lock = %self.candidate.lock.at(), "failed to release the lease within {within:?}");
            }
        }
    }
}

impl Drop for LeaderElector {
    /// A dropped election, with its work, no longer leads.
    fn drop(&mut self) {
        self.candidate.fence.close();
    }
}
