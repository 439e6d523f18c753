//! What carries a set from one state to another: pods come up in an order chosen at random, one
//! step between two syncs, and the invariants are checked after each.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_apimachinery::pod::PodPhase;
use rand::Rng as _;
use rand::seq::SliceRandom as _;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, UpdateStrategyType};
use statefulset_controller_util::testing::upstream::claim_pod_name;
use statefulset_pod_control::stateful_set_utils::ordinal;

use super::fixtures::World;
use crate::error::Error;
use crate::outcome::SyncOutcome;
use crate::testing::invariants::{self, Invariants};

/// The most turns that a driver takes; more than any walk here needs.
const TURNS_MAX: usize = 2_000;
/// How far the clock moves between two turns, in seconds.
const TURN_SECONDS: i64 = 1;

/// Why a driver ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("a sync failed: {0}")]
    Sync(Error),
    #[error("an invariant is violated: {0}")]
    Violated(String),
    #[error("the set doesn't get there")]
    Stuck,
}

/// The number at the end of a pod's name.
pub(super) fn ordinal_of(pod: &Pod) -> i32 {
    let ordinal = ordinal(&pod.name).expect("pods have ordinals");
    ordinal.to_string().parse().expect("an ordinal is a number")
}

/// Fails unless a driver ended with the failure that was injected.
#[track_caller]
pub(super) fn assert_injected(result: Result<(), Failure>) {
    match result {
        Err(Failure::Sync(error)) => assert_eq!(error.to_string(), "injected failure"),
        other => panic!("no sync failed: {other:?}"),
    }
}

impl World {
    /// Brings pods up until as many are ready as the set wants.
    ///
    /// Upstream: `scaleUpStatefulSetControl`.
    pub(super) async fn scale_up(&mut self, invariants: Invariants) -> Result<(), Failure> {
        for _ in 0..TURNS_MAX {
            if self.set.status.ready_replicas >= self.set.spec.replicas {
                return self.check(invariants);
            }
            self.turn(invariants).await?;
        }
        Err(Failure::Stuck)
    }

    /// Removes pods until as many are left as the set wants, and then the claims that lost their
    /// pod with them. Upstream never asks which claims are left in the end.
    ///
    /// Upstream: `scaleDownStatefulSetControl`.
    pub(super) async fn scale_down(&mut self, invariants: Invariants) -> Result<(), Failure> {
        let before = self.claim_names();
        for _ in 0..TURNS_MAX {
            if self.set.status.replicas <= self.set.spec.replicas {
                self.collect_garbage();
                self.check_claims_left(before)?;
                return self.check(invariants);
            }
            let mut pods = self.objects.pods_of(&self.set);
            if let Some(last) = pods.last().cloned() {
                self.sync(&pods).await?;
                self.reread();
                let now = self.now;
                self.objects
                    .add_terminating_pod(&self.set, ordinal_of(&last), now);
                pods = self.objects.pods_of(&self.set);
                self.sync(&pods).await?;
                self.reread();
                pods = self.objects.pods_of(&self.set);
                if let Some(last) = pods.last() {
                    let removed = self.objects.pods.delete(&last.namespace, &last.name);
                    removed.expect("what the cache shows is stored");
                }
            }
            self.sync(&pods).await?;
            self.reread();
            self.check(invariants)?;
        }
        Err(Failure::Stuck)
    }

    /// Brings pods up until all that are to be updated are. Of those that were up before, one at a
    /// time may be down, for which upstream doesn't ask.
    ///
    /// Upstream: `updateStatefulSetControl`.
    pub(super) async fn update(&mut self) -> Result<(), Failure> {
        let mut up = self.running_and_ready();
        up.retain(|pod| self.is_wanted(pod));
        let pods = self.objects.pods_of(&self.set);
        self.sync(&pods).await?;
        self.reread();
        for _ in 0..TURNS_MAX {
            self.check_one_down(&up)?;
            if self.is_update_complete() {
                return Ok(());
            }
            self.turn(invariants::update).await?;
        }
        Err(Failure::Stuck)
    }

    /// Fails if more than one of these pods is gone or not ready.
    fn check_one_down(&self, up: &BTreeSet<String>) -> Result<(), Failure> {
        let still = self.running_and_ready();
        let down: Vec<&String> = up.difference(&still).collect();
        match down.len() {
            ..=1 => Ok(()),
            _ => Err(Failure::Violated(format!(
                "pods {down:?} are down at a time"
            ))),
        }
    }

    fn running_and_ready(&self) -> BTreeSet<String> {
        let mut pods = self.objects.pods_of(&self.set);
        pods.retain(|pod| pod.is_running_and_ready());
        pods.iter().map(|pod| pod.name.to_string()).collect()
    }

    /// Whether the set wants a pod of this name.
    fn is_wanted(&self, pod: &str) -> bool {
        ordinal(pod).is_some_and(|ordinal| ordinal.index_in(&self.set).is_some())
    }

    /// Scales up with all pods pending from their creation: in two syncs at most, as upstream does,
    /// and one more for every 500 pods, which is what one sync creates here.
    ///
    /// Upstream: `parallelScaleUpStatefulSetControl`.
    pub(super) async fn parallel_scale_up(
        &mut self,
        invariants: Invariants,
    ) -> Result<(), Failure> {
        for _ in 0..2 + self.set.spec.replicas / 500 {
            for pod in self.objects.pods_of(&self.set) {
                if !pod.is_created() {
                    self.objects
                        .set_pod_phase(&self.set, ordinal_of(&pod), "Pending");
                }
            }
            let pods = self.objects.pods_of(&self.set);
            self.sync(&pods).await?;
            self.reread();
            self.check(invariants)?;
            if self.set.status.replicas >= self.set.spec.replicas {
                return Ok(());
            }
        }
        Err(Failure::Stuck)
    }

    /// Scales down in two syncs at most, each followed by one that sees the same pods again.
    ///
    /// Upstream: `parallelScaleDownStatefulSetControl`.
    pub(super) async fn parallel_scale_down(
        &mut self,
        invariants: Invariants,
    ) -> Result<(), Failure> {
        for _ in 0..2 {
            let pods = self.objects.pods_of(&self.set);
            self.sync(&pods).await?;
            self.reread();
            self.sync(&pods).await?;
            self.reread();
            if self.set.status.replicas <= self.set.spec.replicas {
                return self.check(invariants);
            }
        }
        Err(Failure::Stuck)
    }

    /// One turn: a new pod becomes pending, a pod chosen at random goes a step on, a sync follows.
    async fn turn(&mut self, invariants: Invariants) -> Result<(), Failure> {
        self.now += jiff::SignedDuration::from_secs(TURN_SECONDS);
        let mut pods = self.objects.pods_of(&self.set);
        if let Some(new) = pods.iter().find(|pod| !pod.is_created()) {
            self.objects
                .set_pod_phase(&self.set, ordinal_of(new), "Pending");
            pods = self.objects.pods_of(&self.set);
        }
        if !pods.is_empty() {
            let pod = &pods[self.random.random_range(0..pods.len())];
            let (ordinal, now) = (ordinal_of(pod), self.now);
            match pod.phase {
                PodPhase::Pending => self.objects.set_pod_phase(&self.set, ordinal, "Running"),
                PodPhase::Running => self.objects.set_pod_ready(&self.set, ordinal, true, now),
                _ => return Ok(()),
            }
            pods = self.objects.pods_of(&self.set);
            // Nothing may depend on the order in which a cache lists pods.
            pods.shuffle(&mut self.random);
        }
        self.sync(&pods).await?;
        self.reread();
        self.check(invariants)
    }

    /// A sync of the set at hand that must not fail.
    pub(super) async fn sync(&self, pods: &[Arc<Pod>]) -> Result<SyncOutcome, Failure> {
        let mut outcome = self.reconcile(&self.set, pods).await;
        match outcome.error.take() {
            Some(error) => Err(Failure::Sync(error)),
            None => Ok(outcome),
        }
    }

    /// Checks the invariants of the set at hand.
    pub(super) fn check(&self, invariants: Invariants) -> Result<(), Failure> {
        invariants(&self.set, &self.objects).map_err(Failure::Violated)
    }

    /// Upstream: `updateComplete`.
    fn is_update_complete(&self) -> bool {
        let (set, status) = (&self.set, &self.set.status);
        let pods = self.objects.pods_of(set);
        let replicas = set.spec.replicas;
        if usize::try_from(replicas) != Ok(pods.len()) || status.ready_replicas != replicas {
            return false;
        }
        if set.spec.update_strategy.strategy_type == UpdateStrategyType::OnDelete {
            return true;
        }
        let partition = set.spec.update_strategy.rolling_update.as_ref();
        match partition.map_or(0, |rolling_update| rolling_update.partition) {
            ..=0 => {
                status.current_replicas >= replicas
                    && pods
                        .iter()
                        .all(|pod| *pod.revision() == *status.current_revision)
            }
            partition => pods
                .iter()
                .skip(usize::try_from(partition).unwrap_or(0))
                .all(|pod| *pod.revision() == *status.update_revision),
        }
    }

    pub(super) fn claim_names(&self) -> BTreeSet<String> {
        let claims = self.objects.claims.cache().list();
        claims.iter().map(|claim| claim.name.to_string()).collect()
    }

    /// Fails unless the claims that are left are those of wanted pods, and the others where they
    /// are to be kept.
    fn check_claims_left(&self, before: BTreeSet<String>) -> Result<(), Failure> {
        let mut kept = before;
        if self.set.spec.claim_retention_policy.when_scaled == ClaimRetentionPolicyType::Delete {
            kept.retain(|claim| {
                let pod = claim_pod_name(&self.set, claim);
                pod.is_some_and(|pod| self.is_wanted(pod))
            });
        }
        let left = self.claim_names();
        if left == kept {
            return Ok(());
        }
        let wrong = format!("claims {left:?} are left, not {kept:?}");
        Err(Failure::Violated(wrong))
    }

    /// Removes the claims whose pod is gone and owns them, by its name.
    fn collect_garbage(&self) {
        let pods: BTreeSet<String> = self.pod_names().into_iter().collect();
        for claim in self.objects.claims.cache().list() {
            let pod = claim_pod_name(&self.set, &claim.name);
            let owned = |pod: &str| claim.owner_references.iter().any(|o| *o.name == *pod);
            if pod.is_some_and(|pod| !pods.contains(pod) && owned(pod)) {
                let removed = self.objects.claims.delete(&claim.namespace, &claim.name);
                removed.expect("what the cache shows is stored");
            }
        }
    }
}
