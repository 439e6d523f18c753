//! Of several instances one works: the one that holds the lease.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use statefulset_client::backoff::SeededJitter;
use statefulset_client::clock::{BootClock, Clock, SystemClock};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::fence::Fence;
use statefulset_client::leaderelection::{
    ElectorParts, Ended, LeaderElectionConfig, LeaderElectionMetrics, LeaderElector, LeaderHealth,
    LeaseLock, LeaseName,
};
use statefulset_client::recorder::{BroadcastRecorder, EventSink};
use statefulset_client::rest::RestClient;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::flags::leader_election::LeaderElectionFlags;

/// What events about the lease name as their source: the name that watchers of the built-in
/// controller know.
const COMPONENT: &str = "kube-controller-manager";
/// The end of the user agent of the client that has nothing but the lease to do.
pub(crate) const CLIENT_NAME: &str = "leader-election";
/// How long the last event may take to be sent.
const EVENT_FLUSH_MAX: Duration = Duration::from_secs(1);

/// The random parts of an election.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElectionSeeds {
    /// For the waits.
    pub(crate) waits: u64,
    /// For events.
    pub(crate) events: u64,
}

/// An election that this process is about to take part in.
pub(crate) struct Election {
    elector: LeaderElector,
    client: RestClient,
    events: EventSink,
    events_seed: u64,
}

impl Election {
    /// Prepares to take part, with a client that has nothing else to do and no fence.
    ///
    /// # Errors
    ///
    /// The flags contradict each other, or the host has no name.
    pub(crate) fn new(
        flags: &LeaderElectionFlags,
        gates: FeatureGates,
        client: RestClient,
        seeds: ElectionSeeds,
        metrics: Arc<dyn LeaderElectionMetrics>,
    ) -> anyhow::Result<Self> {
        let config = LeaderElectionConfig {
            release_on_cancel: gates.controller_manager_release_leader_election_lock_on_exit,
            ..flags.config()
        };
        let client = client.with_body_timeout(config.request_timeout());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (recorder, events) = BroadcastRecorder::new(COMPONENT, Arc::clone(&clock));
        let parts = ElectorParts {
            lock: LeaseLock::new(
                client.clone(),
                lease(flags),
                identity()?,
                Arc::new(recorder),
            ),
            clock,
            monotonic: Arc::new(BootClock),
            jitter: Arc::new(SeededJitter::new(seeds.waits)),
            metrics,
        };
        Ok(Self {
            elector: LeaderElector::new(config, parts)?,
            client,
            events,
            events_seed: seeds.events,
        })
    }

    /// What lets writes pass while this process leads.
    pub(crate) fn fence(&self) -> Fence {
        self.elector.fence()
    }

    /// Tells whether the lease is renewed while this process leads.
    pub(crate) fn health(&self) -> LeaderHealth {
        self.elector.health()
    }

    /// Does the work once this process leads. Ends well without it if told to stop before.
    ///
    /// # Errors
    ///
    /// Those of the work, or the lease was lost before the process was told to stop; then the work
    /// was dropped where it stood, and the process must end.
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
            // It was about to end anyway.
            Ended::Lost(_) if stop.is_cancelled() => Ok(()),
            Ended::Lost(lost) => {
                tracing::error!("leaderelection lost");
                Err(anyhow!("leaderelection lost: {lost}"))
            }
            Ended::Finished(result) => {
                // The elector held the only recorder: without it the sink ends when nothing waits.
                if timeout(EVENT_FLUSH_MAX, events.join_next()).await.is_err() {
                    stop_events.cancel();
                }
                result
            }
        }
    }
}

/// The lease that the flags name.
pub(crate) fn lease(flags: &LeaderElectionFlags) -> LeaseName {
    LeaseName {
        namespace: flags.leader_elect_resource_namespace.clone(),
        name: flags.leader_elect_resource_name.clone(),
    }
}

/// Who this process is: no other one, on no other host and at no other time, is called the same.
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

    #[test]
    fn an_identity_is_the_host_and_something_unique() {
        let (first, second) = (identity().unwrap(), identity().unwrap());
        assert_ne!(first, second);
        let (host, uuid) = first.rsplit_once('_').unwrap();
        assert!(!host.is_empty());
        assert!(Uuid::parse_str(uuid).is_ok(), "{uuid}");
    }
}
