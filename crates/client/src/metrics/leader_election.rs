//! The `leader_election_*` metric families.

use prometheus::{Error, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::register;
use crate::leaderelection::LeaderElectionMetrics;

/// The leader election's metric families.
///
/// Upstream: `component-base/metrics/prometheus/clientgo/leaderelection`.
#[derive(Clone)]
pub struct LeaderElectionFamilies {
    master: IntGaugeVec,
    slowpath: IntCounterVec,
}

impl LeaderElectionFamilies {
    /// Adds the families to a registry.
    ///
    /// # Errors
    ///
    /// Fails if the registry already has one of them.
    pub fn register(registry: &Registry) -> Result<Self, Error> {
        let master = Opts::new(
            "leader_election_master_status",
            "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 \
             indicates backup, 1 indicates master. 'name' is the string used to identify the \
             lease. Please make sure to group by name.",
        );
        let slowpath = Opts::new(
            "leader_election_slowpath_total",
            "[ALPHA] Total number of slow path exercised in renewing leader leases. 'name' is the \
             string used to identify the lease. Please make sure to group by name.",
        );
        Ok(Self {
            master: register(registry, IntGaugeVec::new(master, &["name"]))?,
            slowpath: register(registry, IntCounterVec::new(slowpath, &["name"]))?,
        })
    }
}

impl LeaderElectionMetrics for LeaderElectionFamilies {
    fn master_status(&self, name: &str, leads: bool) {
        self.master.with_label_values(&[name]).set(leads.into());
    }

    fn slowpath_exercised(&self, name: &str) {
        self.slowpath.with_label_values(&[name]).inc();
    }
}
