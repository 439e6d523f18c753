//! The three times of an election, and what must hold between them.

use std::time::Duration;

/// How long others wait after the last renewal that they have seen.
/// Upstream: the default of `--leader-elect-lease-duration`.
pub const LEASE_DURATION_DEFAULT: Duration = Duration::from_secs(15);
/// How long a leader tries to renew before it gives up.
/// Upstream: the default of `--leader-elect-renew-deadline`.
pub const RENEW_DEADLINE_DEFAULT: Duration = Duration::from_secs(10);
/// The wait between two tries. Upstream: the default of `--leader-elect-retry-period`.
pub const RETRY_PERIOD_DEFAULT: Duration = Duration::from_secs(2);
/// The share of the retry period by which a wait for the lease may grow at random, so that the
/// candidates don't all ask at once. Upstream: `JitterFactor`.
pub const JITTER_FACTOR: f64 = 1.2;

/// The shortest time after which a request of an election is given up.
const REQUEST_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// How an election goes.
///
/// Upstream: `LeaderElectionConfig`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderElectionConfig {
    /// How long others wait after the last renewal that they have seen. The lease holds whole
    /// seconds; what is more is cut off.
    pub lease_duration: Duration,
    /// How long a leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// The wait between two tries.
    pub retry_period: Duration,
    /// Whether the lease is given up when the work ends, so that the next one need not wait.
    pub release_on_cancel: bool,
}

impl Default for LeaderElectionConfig {
    /// The numbers of the reference; the lease is not given up at the end.
    fn default() -> Self {
        Self {
            lease_duration: LEASE_DURATION_DEFAULT,
            renew_deadline: RENEW_DEADLINE_DEFAULT,
            retry_period: RETRY_PERIOD_DEFAULT,
            release_on_cancel: false,
        }
    }
}

/// Why there is no election; all texts but the last are upstream's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Others could take the lease while its holder still tries to renew it.
    #[error("leaseDuration must be greater than renewDeadline")]
    LeaseTooShort,
    /// A leader could give up before its second try.
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
    /// Nobody is nobody's rival.
    #[error("Lock identity is empty")]
    NoIdentity,
    /// The lease would hold a duration of 0 seconds, which API servers refuse.
    #[error("leaseDuration must be at least one second")]
    LessThanASecond,
}

impl LeaderElectionConfig {
    /// Checks the times.
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

    /// What the lease holds as its duration: whole seconds.
    pub fn lease_duration_seconds(&self) -> i32 {
        i32::try_from(self.lease_duration.as_secs()).unwrap_or(i32::MAX)
    }

    /// How long one call of the election may take, with all its waits and re-sends.
    ///
    /// Upstream: `NewFromKubeconfig` of the package `resourcelock`.
    pub fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(REQUEST_TIMEOUT_MIN)
    }

    /// How long after the start of a renewal its holder may still begin to write: it gives up by
    /// then, and no rival takes the lease before the seconds that it holds are over. A tenth of
    /// these is always left for what was written to arrive.
    pub(super) fn write_window(&self) -> Duration {
        self.renew_deadline.min(self.recorded() / 10 * 9)
    }

    /// How long what was written may take to arrive: what the lease has left after the last moment
    /// at which a write begins.
    pub(super) fn transit_max(&self) -> Duration {
        self.recorded().saturating_sub(self.write_window())
    }

    /// The duration that rivals read in the lease.
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
    fn times_that_cannot_work_are_refused_in_the_words_of_the_reference() {
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
    fn a_request_has_half_of_the_renew_deadline_but_at_least_a_second() {
        let timeout = |renew| config(60_000, renew, 1).request_timeout();
        assert_eq!(timeout(10_000), Duration::from_secs(5));
        assert_eq!(timeout(1_500), Duration::from_secs(1));
    }

    #[test]
    fn what_the_lease_cannot_hold_ends_the_window_of_writes() {
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
