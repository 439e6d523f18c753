//! Metrics of an election.

/// Receives an election's metrics. Every method does nothing by default.
///
/// Upstream: `leaderMetricsAdapter`.
pub trait LeaderElectionMetrics: Send + Sync {
    /// Reports whether the process leads; `name` is the lease's name. Called once at the start and
    /// at each change.
    fn master_status(&self, name: &str, leads: bool) {
        let _ = (name, leads);
    }

    /// A leader had to read the lease before it could renew it.
    fn slowpath_exercised(&self, name: &str) {
        let _ = name;
    }
}

/// Discards metrics.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopLeaderElectionMetrics;

impl LeaderElectionMetrics for NoopLeaderElectionMetrics {}
