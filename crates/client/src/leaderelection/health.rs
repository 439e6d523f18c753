//! The health of a leader: it fails once the lease is not renewed in time.

use std::sync::Arc;
use std::time::Duration;

use super::elector::Shared;

/// How long after the end of its lease a leader may still call itself well. Upstream: the timeout
/// that kube-controller-manager gives to `NewLeaderHealthzAdaptor`.
const TOLERANCE: Duration = Duration::from_secs(20);

/// Tells whether a leader still renews its lease. Clones look at the same election.
///
/// Upstream: `HealthzAdaptor`.
#[derive(Clone)]
pub struct LeaderHealth {
    pub(super) shared: Arc<Shared>,
}

impl LeaderHealth {
    /// Fails with a text if the process is the holder as far as it knows, and its last successful
    /// renewal is longer ago than the lease lasts and 20 s more. Who doesn't lead is well.
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

    /// Whether this process is the holder, as far as it knows.
    pub fn is_leader(&self) -> bool {
        self.shared.observed().record.holder_identity == self.shared.identity
    }
}
