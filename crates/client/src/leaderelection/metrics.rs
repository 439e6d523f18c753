//! Measurements of an election.

/// Takes the measurements of an election. Every method does nothing unless implemented.
///
/// Upstream: `leaderMetricsAdapter`.
pub trait LeaderElectionMetrics: Send + Sync {
    /// The process leads (true) or doesn't; `name` is that of the lease. Told once at the start,
    /// and at each change.
    fn master_status(&self, name: &str, leads: bool) {
        let _ = (name, leads);
    }

    /// A leader had to read the lease before it could renew it.
    fn slowpath_exercised(&self, name: &str) {
        let _ = name;
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopLeaderElectionMetrics;

impl LeaderElectionMetrics for NoopLeaderElectionMetrics {}
