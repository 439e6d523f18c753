//! A leader's health check, which fails if the lease is not renewed in time.

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;

/// Time after the lease's expiry for which a leader still counts as healthy. Upstream: the timeout
/// that kube-controller-manager passes to `NewLeaderHealthzAdaptor`.
const TOLERANCE: Duration = Duration::from_secs(20);

/// Checks that a leader still renews its lease. Clones check the same election.
///
/// Upstream: `HealthzAdaptor`.
#[derive(Clone)]
pub struct LeaderHealth {
    pub(super) shared: Arc<Shared>,
}

impl LeaderHealth {
    /// Fails if this process considers itself the holder, and its last successful renewal is older
    /// than the lease duration plus 20 s. A process that doesn't lead is healthy.
    ///
    /// Upstream: `LeaderElector.Check`.
    pub fn check(&self) -> Result<(), String> {
        let Shared {
            name,
            identity,
            lease_duration,
            clock,
            ..
        } = &*self.shared;
        let observed = self.shared.observed();
        let since = clock.elapsed().saturating_sub(observed.at);
        if observed.record.holder_identity == *identity && since > *lease_duration + TOLERANCE {
            return Err(format!(
                "failed election to renew leadership on lease {name}"
            ));
        }
        Ok(())
    }

    /// Returns true if this process considers itself the holder.
    pub fn is_leader(&self) -> bool {
        self.shared.observed().record.holder_identity == self.shared.identity
    }
}
