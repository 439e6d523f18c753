//! Leader election: of several instances, the lease holder runs the controller.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use statefulset_client::backoff::SeededJitter;
use statefulset_client::clock::{Clock, SystemClock};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::fence::Fence;
use statefulset_client::leaderelection::{
    ElectorParts, Ended, LeaderElectionMetrics, LeaderElector, LeaderHealth, LeaseLock, LeaseName,
};
use statefulset_client::recorder::{BroadcastRecorder, EventSink};
use statefulset_client::rest::RestClient;
use statefulset_client::shard::Shard;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::flags::leader_election::LeaderElectionFlags;

/// Source of lease events: the name that users know from the built-in controller.
const COMPONENT: &str = "kube-controller-manager";
/// Suffix of the user agent of the lease client.
pub(crate) const CLIENT_NAME: &str = "leader-election";
/// Time limit for sending the last event.
const EVENT_FLUSH_MAX: Duration = Duration::from_secs(1);

/// Random seeds of an election.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElectionSeeds {
    /// Seed for waits.
    pub(crate) waits: u64,
    /// Seed for events.
    pub(crate) events: u64,
}

/// An election that this process is about to join.
pub(crate) struct Election {
    elector: LeaderElector,
    client: RestClient,
    events: EventSink,
    events_seed: u64,
}

impl Election {
    /// Prepares an election with a dedicated client without a fence.
    ///
    /// # Errors
    ///
    /// The flags contradict each other, or the host has no name.
    pub(crate) fn new(
        flags: &LeaderElectionFlags,
        shard: Option<Shard>,
        gates: FeatureGates,
        client: RestClient,
        seeds: ElectionSeeds,
        metrics: Arc<dyn LeaderElectionMetrics>,
    ) -> anyhow::Result<Self> {
        let releases = gates.controller_manager_release_leader_election_lock_on_exit;
        let config = flags.config().release_on_cancel(releases);
        let client = client.with_body_timeout(config.request_timeout());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (recorder, events) = BroadcastRecorder::new(COMPONENT, Arc::clone(&clock));
        let lock = LeaseLock::new(
            client.clone(),
            lease(flags, shard),
            identity()?,
            Arc::new(recorder),
        );
        let jitter = Arc::new(SeededJitter::new(seeds.waits));
        let parts = ElectorParts::new(lock, jitter)
            .clock(clock)
            .metrics(metrics);
        Ok(Self {
            elector: LeaderElector::new(config, parts)?,
            client,
            events,
            events_seed: seeds.events,
        })
    }

    /// Fence that lets writes pass only while this process leads.
    pub(crate) fn fence(&self) -> Fence {
        self.elector.fence()
    }

    /// Reports whether the leader renews its lease in time.
    pub(crate) fn health(&self) -> LeaderHealth {
        self.elector.health()
    }

    /// Runs the work once this process leads. Returns `Ok` without running it if stopped before.
    ///
    /// # Errors
    ///
    /// Errors of the work, or the lease was lost before the process was asked to stop; then the
    /// work was dropped unfinished, and the process must exit.
    pub(crate) async fn run(
        self,
        stop: &CancellationToken,
        work: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let stop_events = CancellationToken::new();
        let mut events = JoinSet::new();
        let sink = self.events;
        events.spawn(sink.run(self.client, self.events_seed, stop_events.clone()));
        match self.elector.run(stop, work).await {
            Ended::NeverLed => Ok(()),
            // The process was about to exit anyway.
            Ended::Lost(_) if stop.is_cancelled() => Ok(()),
            Ended::Lost(lost) => {
                tracing::error!("leaderelection lost");
                Err(anyhow!("leaderelection lost: {lost}"))
            }
            Ended::Finished(result) => {
                // The elector held the only recorder; without it the sink ends once its queue is
                // empty.
                if timeout(EVENT_FLUSH_MAX, events.join_next()).await.is_err() {
                    stop_events.cancel();
                }
                result
            }
        }
    }
}

/// Lease named by the flags. Each shard has its own.
pub(crate) fn lease(flags: &LeaderElectionFlags, shard: Option<Shard>) -> LeaseName {
    let name = &flags.leader_elect_resource_name;
    let name = match shard {
        Some(shard) => format!("{name}-shard-{}-of-{}", shard.index(), shard.count()),
        None => name.clone(),
    };
    LeaseName::new(&flags.leader_elect_resource_namespace, name)
}

/// Identity of this process, unique across hosts and time.
///
/// Upstream: `Run` of `kube-controller-manager/app`.
fn identity() -> anyhow::Result<String> {
    let system = rustix::system::uname();
    let host = system.nodename().to_str().context("read the host's name")?;
    Ok(format!("{host}_{}", Uuid::new_v4()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Invocation, parse};

    #[test]
    fn each_shard_has_its_own_lease() {
        let Ok(Invocation::Run(flags)) = parse([""; 0].iter()) else {
            panic!("no arguments are valid");
        };
        let name = |shard: Option<&str>| {
            let shard = shard.map(|shard| shard.parse().unwrap());
            lease(&flags.leader_election, shard).name
        };
        assert_eq!(name(None), "kube-controller-manager");
        assert_eq!(name(Some("1/2")), "kube-controller-manager-shard-1-of-2");
    }

    #[test]
    fn identity_is_the_host_and_a_unique_suffix() {
        let (first, second) = (identity().unwrap(), identity().unwrap());
        assert_ne!(first, second);
        let (host, uuid) = first.rsplit_once('_').unwrap();
        assert!(!host.is_empty());
        assert!(Uuid::parse_str(uuid).is_ok(), "{uuid}");
    }
}
