//! Leader election flags.

use std::time::Duration;

use anyhow::ensure;
use clap::ArgAction;
use statefulset_client::leaderelection::LeaderElectionConfig;

use super::values;

/// Upstream: `LeaderElectionConfiguration`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[expect(
    clippy::struct_field_names,
    reason = "the fields have the names of the flags"
)]
#[command(next_help_heading = "Generic flags")]
pub(crate) struct LeaderElectionFlags {
    /// Run only while holding a lease. Without it, make sure that no other StatefulSet controller
    /// runs
    #[arg(long, value_name = "bool", action = ArgAction::Set, default_value = "true", value_parser = values::boolean)]
    pub(crate) leader_elect: bool,

    /// Time that candidates wait after the last observed renewal before they take over the lease
    #[arg(long, value_name = "duration", default_value = "15s", value_parser = values::duration)]
    pub(crate) leader_elect_lease_duration: Duration,

    /// Time that the holder tries to renew the lease before it gives up and exits; less than the
    /// lease duration
    #[arg(long, value_name = "duration", default_value = "10s", value_parser = values::duration)]
    pub(crate) leader_elect_renew_deadline: Duration,

    /// Interval between attempts to acquire or renew the lease
    #[arg(long, value_name = "duration", default_value = "2s", value_parser = values::duration)]
    pub(crate) leader_elect_retry_period: Duration,

    /// Type of the lock object; only leases is supported
    #[arg(long, value_name = "string", default_value = "leases")]
    pub(crate) leader_elect_resource_lock: String,

    /// Name of the lease
    #[arg(long, value_name = "string", default_value = "kube-controller-manager")]
    pub(crate) leader_elect_resource_name: String,

    /// Namespace of the lease
    #[arg(long, value_name = "string", default_value = "kube-system")]
    pub(crate) leader_elect_resource_namespace: String,
}

impl LeaderElectionFlags {
    /// Validates the durations against each other. Checks nothing without leader election.
    ///
    /// # Errors
    ///
    /// The first violated rule, in the words of upstream.
    ///
    /// Upstream: `NewLeaderElector`.
    pub(crate) fn validate(&self) -> anyhow::Result<()> {
        if !self.leader_elect {
            return Ok(());
        }
        ensure!(
            self.leader_elect_resource_lock == "leases",
            "resourceLock value must be \"leases\""
        );
        self.config().validate()?;
        for (flag, value) in [
            ("name", &self.leader_elect_resource_name),
            ("namespace", &self.leader_elect_resource_namespace),
        ] {
            ensure!(
                !value.is_empty(),
                "--leader-elect-resource-{flag} must not be empty"
            );
        }
        Ok(())
    }

    /// Durations of the election.
    pub(crate) fn config(&self) -> LeaderElectionConfig {
        LeaderElectionConfig::default()
            .lease_duration(self.leader_elect_lease_duration)
            .renew_deadline(self.leader_elect_renew_deadline)
            .retry_period(self.leader_elect_retry_period)
    }
}
