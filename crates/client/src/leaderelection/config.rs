//! The durations of an election and their constraints.

use std::time::Duration;

/// Default time after the last seen renewal at which rivals may take the lease.
/// Upstream: the default of `--leader-elect-lease-duration`.
pub const LEASE_DURATION_DEFAULT: Duration = Duration::from_secs(15);
/// Default time that a leader keeps trying to renew.
/// Upstream: the default of `--leader-elect-renew-deadline`.
pub const RENEW_DEADLINE_DEFAULT: Duration = Duration::from_secs(10);
/// Default wait between two attempts. Upstream: the default of `--leader-elect-retry-period`.
pub const RETRY_PERIOD_DEFAULT: Duration = Duration::from_secs(2);
/// Maximum random share added to the retry period while waiting for the lease, so that candidates
/// don't send their requests simultaneously. Upstream: `JitterFactor`.
pub const JITTER_FACTOR: f64 = 1.2;

/// Minimum timeout of an election request.
const REQUEST_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// Settings of an election.
///
/// Upstream: `LeaderElectionConfig`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaderElectionConfig {
    /// Time after the last seen renewal at which rivals may take the lease. The lease stores whole
    /// seconds, rounded down.
    pub lease_duration: Duration,
    /// Time that a leader keeps trying to renew.
    pub renew_deadline: Duration,
    /// Wait between two attempts.
    pub retry_period: Duration,
    /// True to release the lease when the work ends, so that the next leader need not wait.
    pub release_on_cancel: bool,
}

impl Default for LeaderElectionConfig {
    /// Upstream's durations; the lease is not released.
    fn default() -> Self {
        Self {
            lease_duration: LEASE_DURATION_DEFAULT,
            renew_deadline: RENEW_DEADLINE_DEFAULT,
            retry_period: RETRY_PERIOD_DEFAULT,
            release_on_cancel: false,
        }
    }
}

/// An invalid configuration; all messages but the last are upstream's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Rivals could take the lease while its holder still tries to renew it.
    #[error("leaseDuration must be greater than renewDeadline")]
    LeaseTooShort,
    /// A leader could give up before its second attempt.
    #[error("renewDeadline must be greater than retryPeriod*JitterFactor")]
    DeadlineTooShort,
    /// The lease duration is zero.
    #[error("leaseDuration must be greater than zero")]
    NoLeaseDuration,
    /// The renew deadline is zero.
    #[error("renewDeadline must be greater than zero")]
    NoRenewDeadline,
    /// The retry period is zero.
    #[error("retryPeriod must be greater than zero")]
    NoRetryPeriod,
    /// Candidates need distinct identities.
    #[error("Lock identity is empty")]
    NoIdentity,
    /// The lease would contain a duration of 0 seconds, which API servers reject.
    #[error("leaseDuration must be at least one second")]
    LessThanASecond,
}

impl LeaderElectionConfig {
    /// Sets the time after the last seen renewal at which rivals may take the lease.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Sets the time that a leader keeps trying to renew.
    #[must_use]
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// Sets the wait between two attempts.
    #[must_use]
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// Releases the lease when the work ends.
    #[must_use]
    pub fn release_on_cancel(mut self, release: bool) -> Self {
        self.release_on_cancel = release;
        self
    }

    /// Validates the durations.
    ///
    /// Upstream: `NewLeaderElector`.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let Self {
            lease_duration,
            renew_deadline,
            retry_period,
            release_on_cancel: _,
        } = *self;
        if lease_duration <= renew_deadline {
            return Err(ConfigError::LeaseTooShort);
        }
        if renew_deadline <= retry_period.mul_f64(JITTER_FACTOR) {
            return Err(ConfigError::DeadlineTooShort);
        }
        for (duration, error) in [
            (lease_duration, ConfigError::NoLeaseDuration),
            (renew_deadline, ConfigError::NoRenewDeadline),
            (retry_period, ConfigError::NoRetryPeriod),
        ] {
            if duration.is_zero() {
                return Err(error);
            }
        }
        if self.lease_duration_seconds() == 0 {
            return Err(ConfigError::LessThanASecond);
        }
        Ok(())
    }

    /// Returns the lease's duration field: whole seconds.
    pub fn lease_duration_seconds(&self) -> i32 {
        i32::try_from(self.lease_duration.as_secs()).unwrap_or(i32::MAX)
    }

    /// Returns the time limit of one election call, including waits and retries.
    ///
    /// Upstream: `NewFromKubeconfig` of the package `resourcelock`.
    pub fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(REQUEST_TIMEOUT_MIN)
    }

    /// Returns the time after the start of a renewal in which its holder may start writes. It ends
    /// by the renew deadline and before rivals may take the lease. A tenth of the recorded duration
    /// always remains for the delivery of writes.
    pub(super) fn write_window(&self) -> Duration {
        self.renew_deadline.min(self.recorded() / 10 * 9)
    }

    /// Returns the time limit for the delivery of a write: the rest of the lease after the last
    /// moment at which a write may start.
    pub(super) fn transit_max(&self) -> Duration {
        self.recorded().saturating_sub(self.write_window())
    }

    /// Returns the duration that rivals read in the lease.
    fn recorded(&self) -> Duration {
        Duration::from_secs(self.lease_duration.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(lease: u64, renew: u64, retry: u64) -> LeaderElectionConfig {
        LeaderElectionConfig {
            lease_duration: Duration::from_millis(lease),
            renew_deadline: Duration::from_millis(renew),
            retry_period: Duration::from_millis(retry),
            release_on_cancel: false,
        }
    }

    #[test]
    fn invalid_durations_are_rejected_with_reference_errors() {
        let table = [
            (
                10,
                10,
                1,
                "leaseDuration must be greater than renewDeadline",
            ),
            (0, 0, 0, "leaseDuration must be greater than renewDeadline"),
            (
                15,
                12,
                10,
                "renewDeadline must be greater than retryPeriod*JitterFactor",
            ),
            (
                15,
                0,
                0,
                "renewDeadline must be greater than retryPeriod*JitterFactor",
            ),
            (15, 10, 0, "retryPeriod must be greater than zero"),
            (999, 10, 2, "leaseDuration must be at least one second"),
        ];
        for (lease, renew, retry, text) in table {
            let error = config(lease, renew, retry).validate().unwrap_err();
            assert_eq!(error.to_string(), text, "{lease} {renew} {retry}");
        }
        assert_eq!(LeaderElectionConfig::default().validate(), Ok(()));
        assert_eq!(config(15_000, 12_001, 10_000).validate(), Ok(()));
    }

    #[test]
    fn request_timeout_is_half_renew_deadline_or_one_second() {
        let timeout = |renew| config(60_000, renew, 1).request_timeout();
        assert_eq!(timeout(10_000), Duration::from_secs(5));
        assert_eq!(timeout(1_500), Duration::from_secs(1));
    }

    #[test]
    fn recorded_duration_limits_write_window() {
        let default = config(15_000, 10_000, 2_000);
        assert_eq!(default.write_window(), Duration::from_secs(10));
        assert_eq!(default.transit_max(), Duration::from_secs(5));
        // Rivals read 1 s.
        let short = config(1_900, 1_500, 300);
        assert_eq!(short.lease_duration_seconds(), 1);
        assert_eq!(short.write_window(), Duration::from_millis(900));
        assert_eq!(short.transit_max(), Duration::from_millis(100));
    }
}
