//! A single attempt to acquire, renew or release the lease.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use super::config::LeaderElectionConfig;
use super::lock::LeaseLock;
use super::metrics::LeaderElectionMetrics;
use super::record::{LeaderElectionRecord, whole_micros};
use super::shared::{Observed, Shared};
use crate::clock::Clock;
use crate::error::Error;
use crate::fault_log::FaultLog;
use crate::fence::Fence;

/// A process that wants or holds the lease. It acts only when it is asked to.
pub(super) struct Candidate {
    pub(super) config: LeaderElectionConfig,
    pub(super) lock: LeaseLock,
    pub(super) metrics: Arc<dyn LeaderElectionMetrics>,
    pub(super) fence: Fence,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) shared: Arc<Shared>,
    /// The current failure, logged once.
    pub(super) failure: FaultLog<String>,
}

/// The result of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Try {
    /// This process now holds the lease.
    Held,
    /// The attempt failed, or its result is unknown.
    Failed,
    /// This process lost the lease to another holder.
    Taken {
        /// The current holder; empty if it has released the lease.
        holder: String,
    },
}

impl Candidate {
    /// Makes one attempt to acquire or renew the lease.
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

        // A holder has seen the lease's current version, unless another client changed it.
        let observed = self.shared.observed();
        if self.is_ours(&observed) && self.is_valid(&observed) {
            record.acquire_time = observed.record.acquire_time;
            record.leader_transitions = observed.record.leader_transitions;
            match self.update(&record).await {
                Ok(()) => return Try::Held,
                Err(error) => self.report("cannot renew the lease without reading it", &error),
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

    /// Records that the server has stored this process's record. `begin` is the start of the
    /// request.
    fn hold(&mut self, record: &LeaderElectionRecord, begin: Duration) {
        self.observe(record.clone());
        self.fence.open_until(begin + self.config.write_window());
        if self.failure.end().is_some() {
            tracing::info!(lock = %self.lock.at(), "the lease can be written again");
        }
    }

    /// Stores the record with the monotonic clock time at which it was seen.
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

    /// Returns true if the lease has not expired since its last seen change.
    ///
    /// Upstream: `isLeaseValid`.
    fn is_valid(&self, observed: &Observed) -> bool {
        let seconds = u64::try_from(observed.record.lease_duration_seconds).unwrap_or(0);
        observed.at.saturating_add(Duration::from_secs(seconds)) > self.shared.clock.elapsed()
    }

    /// Logs a failure, as a warning if it differs from the last one. Skips failures that the API
    /// health log has logged.
    fn report(&mut self, what: &str, error: &Error) {
        let text = format!("{what}: {error}");
        // The timeout is the election's own, not the server's fault.
        let is_logged = error.is_server_wide() && !matches!(error, Error::Timeout { .. });
        // Conflicts are normal between rivals.
        if error.is_conflict() || is_logged || !self.failure.begin(text.clone()) {
            tracing::debug!(lock = %self.lock.at(), "{text}");
            return;
        }
        tracing::warn!(lock = %self.lock.at(), "{text}");
    }

    /// Releases the lease, so that others need not wait until it expires. After a conflict, it reads
    /// the lease again and retries every retry period: the last renewal may still have been on its
    /// way. The caller limits the time.
    ///
    /// Upstream: `release`, of v1.37.
    pub(super) async fn release(&mut self) -> Result<(), Error> {
        loop {
            match self.release_once().await {
                Err(error) if error.is_conflict() => sleep(self.config.retry_period).await,
                result => return result,
            }
        }
    }

    async fn release_once(&mut self) -> Result<(), Error> {
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
