//! A single attempt to acquire or renew the lease.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::config::{ConfigError, LeaderElectionConfig};
use super::health::LeaderHealth;
use super::lock::LeaseLock;
use super::metrics::LeaderElectionMetrics;
use super::record::{LeaderElectionRecord, whole_micros};
use crate::backoff::Jitter;
use crate::clock::{Clock, MonotonicClock};
use crate::error::Error;
use crate::fault_log::FaultLog;
use crate::fence::Fence;

/// What an elector is given.
pub struct ElectorParts {
    /// The lease.
    pub lock: LeaseLock,
    /// Tells the times that the lease holds.
    pub clock: Arc<dyn Clock>,
    /// Tells how long ago the lease was seen to change, and until when writes may begin.
    pub monotonic: Arc<dyn MonotonicClock>,
    /// Where the random part of the waits for the lease comes from.
    pub jitter: Arc<dyn Jitter>,
    /// Who counts.
    pub metrics: Arc<dyn LeaderElectionMetrics>,
}

/// Competes for a lease, and keeps it while there is work.
///
/// Upstream: `LeaderElector`.
pub struct LeaderElector {
    pub(super) config: LeaderElectionConfig,
    pub(super) lock: LeaseLock,
    pub(super) jitter: Arc<dyn Jitter>,
    pub(super) metrics: Arc<dyn LeaderElectionMetrics>,
    pub(super) fence: Fence,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    /// The latest failure, as long as it lasts: each is logged once.
    failure: FaultLog<String>,
}

/// What the elector and its [`LeaderHealth`] both look at.
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) lease_duration: Duration,
    pub(super) clock: Arc<dyn MonotonicClock>,
    observed: Mutex<Observed>,
}

/// What the lease last was, as far as this process knows.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    pub(super) record: LeaderElectionRecord,
    /// When it was seen to change, by the monotonic clock.
    pub(super) at: Duration,
}

impl Shared {
    pub(super) fn observed(&self) -> Observed {
        let observed = self.observed.lock();
        observed.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How a try ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Try {
    /// The lease is ours now.
    Held,
    /// It isn't, or that isn't known.
    Failed,
    /// It was ours, and somebody else has had it since.
    Taken {
        /// The holder now; empty if it was given up.
        holder: String,
    },
}

impl LeaderElector {
    /// An elector that does nothing until it is run.
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
        Ok(Self {
            config,
            lock,
            jitter,
            metrics,
            fence: Fence::new(monotonic).with_transit_max(config.transit_max()),
            clock,
            shared: Arc::new(shared),
            failure: FaultLog::default(),
        })
    }

    /// What lets writes pass while this elector leads.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// What tells whether this elector, if it leads, still renews its lease.
    pub fn health(&self) -> LeaderHealth {
        LeaderHealth {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Tries once to get the lease, or to renew it.
    ///
    /// Upstream: `tryAcquireOrRenew`.
    pub(super) async fn try_acquire_or_renew(&mut self, leads: bool) -> Try {
        let now = whole_micros(self.clock.now());
        let mut record = LeaderElectionRecord {
            holder_identity: self.lock.identity().to_owned(),
            lease_duration_seconds: self.config.lease_duration_seconds(),
            acquire_time: Some(now),
            renew_time: Some(now),
            leader_transitions: 0,
        };

        // Who holds the lease has seen its current version, unless somebody meddled with it.
        let observed = self.shared.observed();
        if self.is_ours(&observed) && self.is_valid(&observed) {
            record.acquire_time = observed.record.acquire_time;
            record.leader_transitions = observed.record.leader_transitions;
            match self.update(&record).await {
                Ok(()) => return Try::Held,
                Err(error) => self.report("cannot renew the lease at once", &error),
            }
        }

        let found = match self.lock.get().await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return self.create(&record).await,
            Err(error) => {
                self.report("error retrieving the lease", &error);
                return Try::Failed;
            }
        };
        let ours_until_now = leads.then_some(observed.record);
        if found != self.shared.observed().record {
            self.observe(found.clone());
        }
        let observed = self.shared.observed();
        if self.is_ours(&observed) {
            record.acquire_time = found.acquire_time;
            record.leader_transitions = found.leader_transitions;
            self.metrics.slowpath_exercised(&self.shared.name);
        } else {
            if let Some(ours) = ours_until_now
                && (!found.holder_identity.is_empty()
                    || found.leader_transitions != ours.leader_transitions)
            {
                let holder = found.holder_identity;
                return Try::Taken { holder };
            }
            if !found.holder_identity.is_empty() && self.is_valid(&observed) {
                self.failure.end();
                tracing::debug!(lock = %self.lock.at(), holder = found.holder_identity,
                    "lease is held and has not yet expired");
                return Try::Failed;
            }
            record.leader_transitions = found.leader_transitions.saturating_add(1);
        }
        match self.update(&record).await {
            Ok(()) => Try::Held,
            Err(error) => {
                self.report("failed to update the lease", &error);
                Try::Failed
            }
        }
    }

    async fn create(&mut self, record: &LeaderElectionRecord) -> Try {
        let begin = self.shared.clock.elapsed();
        match self.lock.create(record).await {
            Ok(()) => {
                self.hold(record, begin);
                Try::Held
            }
            Err(error) => {
                self.report("error initially creating the lease", &error);
                Try::Failed
            }
        }
    }

    async fn update(&mut self, record: &LeaderElectionRecord) -> Result<(), Error> {
        let begin = self.shared.clock.elapsed();
        self.lock.update(record).await?;
        self.hold(record, begin);
        Ok(())
    }

    /// Takes note that the server has stored our record; the request began at that moment.
    fn hold(&mut self, record: &LeaderElectionRecord, begin: Duration) {
        self.observe(record.clone());
        self.fence.open_until(begin + self.config.write_window());
        if self.failure.end().is_some() {
            tracing::info!(lock = %self.lock.at(), "the lease can be written again");
        }
    }

    /// Remembers the record with the moment at which it was seen, by this machine's clock.
    ///
    /// Upstream: `setObservedRecord`.
    fn observe(&self, record: LeaderElectionRecord) {
        let observed = &mut *self
            .shared
            .observed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let holder = &record.holder_identity;
        if *holder != observed.record.holder_identity && *holder != self.shared.identity {
            tracing::info!(lock = %self.lock.at(), holder, "the lease has another holder");
        }
        observed.record = record;
        observed.at = self.shared.clock.elapsed();
    }

    fn is_ours(&self, observed: &Observed) -> bool {
        observed.record.holder_identity == self.shared.identity
    }

    /// Whether the lease was seen to change so recently that it still holds.
    ///
    /// Upstream: `isLeaseValid`.
    fn is_valid(&self, observed: &Observed) -> bool {
        let seconds = u64::try_from(observed.record.lease_duration_seconds).unwrap_or(0);
        observed.at.saturating_add(Duration::from_secs(seconds)) > self.shared.clock.elapsed()
    }

    /// Logs a failure, as a warning if it is another one than the last, unless the state of the
    /// server has logged it.
    fn report(&mut self, what: &str, error: &Error) {
        let text = format!("{what}: {error}");
        // The limit of a call is the election's own.
        let is_told = error.is_server_wide() && !matches!(error, Error::Timeout { .. });
        // Conflicts are how rivals notice each other.
        if error.is_conflict() || is_told || !self.failure.begin(text.clone()) {
            tracing::debug!(lock = %self.lock.at(), "{text}");
            return;
        }
        tracing::warn!(lock = %self.lock.at(), "{text}");
    }

    /// Gives the lease up, so that others need not wait for its end.
    ///
    /// Upstream: `release`.
    pub(super) async fn release(&mut self) -> Result<(), Error> {
        let found = self.lock.get().await?;
        if found.holder_identity != self.shared.identity {
            return Ok(());
        }
        let now = whole_micros(self.clock.now());
        let record = LeaderElectionRecord {
            holder_identity: String::new(),
            lease_duration_seconds: 1,
            acquire_time: Some(now),
            renew_time: Some(now),
            leader_transitions: found.leader_transitions,
        };
        self.lock.update(&record).await?;
        self.observe(record);
        Ok(())
    }
}
