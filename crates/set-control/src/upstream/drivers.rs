//! Drivers that move a set from one state to another: pods become ready in random order, one step
//! between two syncs, and the invariants are checked after each step.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_apimachinery::pod::PodPhase;
use rand::Rng as _;
use rand::seq::SliceRandom as _;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{ClaimRetentionPolicyType, UpdateStrategyType};
use statefulset_controller_util::testing::upstream::claim_pod_name;
use statefulset_pod_control::stateful_set_utils::ordinal;

use super::fixtures::Walk;
use crate::error::Error;
use crate::outcome::SyncOutcome;
use crate::testing::invariants::{self, Invariants};

/// Maximum of turns per driver; more than any walk here needs.
const TURNS_MAX: usize = 2_000;
/// Time that the clock advances between two turns, in seconds.
const TURN_SECONDS: i64 = 1;

/// Reason for a driver to stop early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("a sync failed: {0}")]
    Sync(Error),
    #[error("an invariant is violated: {0}")]
    Violated(String),
    #[error("the set doesn't reach its wanted state")]
    Stuck,
}

/// Returns the number at the end of a pod's name.
pub(super) fn ordinal_of(pod: &Pod) -> i32 {
    let ordinal = ordinal(&pod.name).expect("pods have ordinals");
    ordinal.to_string().parse().expect("an ordinal is a number")
}

/// Fails unless the driver stopped with the injected failure.
#[track_caller]
pub(super) fn assert_injected(result: Result<(), Failure>) {
    match result {
        Err(Failure::Sync(error)) => assert_eq!(error.to_string(), "injected failure"),
        other => panic!("no sync failed: {other:?}"),
    }
}

impl Walk {
    /// Makes pods ready until the set has its wanted number of ready pods.
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

    /// Removes pods until the set has its wanted number, then the claims owned by the removed pods.
    /// Upstream never checks the remaining claims.
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
            let mut pods = self.world.objects.pods_of(&self.set);
            if let Some(last) = pods.last().cloned() {
                self.sync(&pods).await?;
                self.reread();
                let now = self.world.now;
                self.world
                    .objects
                    .add_terminating_pod(&self.set, ordinal_of(&last), now);
                pods = self.world.objects.pods_of(&self.set);
                self.sync(&pods).await?;
                self.reread();
                pods = self.world.objects.pods_of(&self.set);
                if let Some(last) = pods.last() {
                    let removed = self.world.objects.pods.delete(&last.namespace, &last.name);
                    removed.expect("cached objects are stored");
                }
            }
            self.sync(&pods).await?;
            self.reread();
            self.check(invariants)?;
        }
        Err(Failure::Stuck)
    }

    /// Makes pods ready until the update is complete. Of the previously ready pods only one may be
    /// down at a time, which upstream doesn't check.
    ///
    /// Upstream: `updateStatefulSetControl`.
    pub(super) async fn update(&mut self) -> Result<(), Failure> {
        let mut up = self.running_and_ready();
        up.retain(|pod| self.is_wanted(pod));
        let pods = self.world.objects.pods_of(&self.set);
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

    /// Fails if more than one of these pods is missing or not ready.
    fn check_one_down(&self, up: &BTreeSet<String>) -> Result<(), Failure> {
        let still = self.running_and_ready();
        let down: Vec<&String> = up.difference(&still).collect();
        match down.len() {
            ..=1 => Ok(()),
            _ => Err(Failure::Violated(format!(
                "pods {down:?} are down at the same time"
            ))),
        }
    }

    fn running_and_ready(&self) -> BTreeSet<String> {
        let mut pods = self.world.objects.pods_of(&self.set);
        pods.retain(|pod| pod.is_running_and_ready());
        pods.iter().map(|pod| pod.name.to_string()).collect()
    }

    /// True if the set wants a pod of this name.
    fn is_wanted(&self, pod: &str) -> bool {
        ordinal(pod).is_some_and(|ordinal| ordinal.index_in(&self.set).is_some())
    }

    /// Scales up with all pods pending after their creation: in at most two syncs, as upstream
    /// does, and one more per 500 pods, the maximum that one sync creates here.
    ///
    /// Upstream: `parallelScaleUpStatefulSetControl`.
    pub(super) async fn parallel_scale_up(
        &mut self,
        invariants: Invariants,
    ) -> Result<(), Failure> {
        for _ in 0..2 + self.set.spec.replicas / 500 {
            for pod in self.world.objects.pods_of(&self.set) {
                if !pod.is_created() {
                    self.world
                        .objects
                        .set_pod_phase(&self.set, ordinal_of(&pod), "Pending");
                }
            }
            let pods = self.world.objects.pods_of(&self.set);
            self.sync(&pods).await?;
            self.reread();
            self.check(invariants)?;
            if self.set.status.replicas >= self.set.spec.replicas {
                return Ok(());
            }
        }
        Err(Failure::Stuck)
    }

    /// Scales down in at most two syncs, each followed by another one with the same pods.
    ///
    /// Upstream: `parallelScaleDownStatefulSetControl`.
    pub(super) async fn parallel_scale_down(
        &mut self,
        invariants: Invariants,
    ) -> Result<(), Failure> {
        for _ in 0..2 {
            let pods = self.world.objects.pods_of(&self.set);
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

    /// One turn: new pods become pending, a random pod takes one step, and the set is synced.
    async fn turn(&mut self, invariants: Invariants) -> Result<(), Failure> {
        self.world.now += jiff::SignedDuration::from_secs(TURN_SECONDS);
        let mut pods = self.world.objects.pods_of(&self.set);
        if let Some(new) = pods.iter().find(|pod| !pod.is_created()) {
            self.world
                .objects
                .set_pod_phase(&self.set, ordinal_of(new), "Pending");
            pods = self.world.objects.pods_of(&self.set);
        }
        if !pods.is_empty() {
            let pod = &pods[self.random.random_range(0..pods.len())];
            let (ordinal, now) = (ordinal_of(pod), self.world.now);
            match pod.phase {
                PodPhase::Pending => self
                    .world
                    .objects
                    .set_pod_phase(&self.set, ordinal, "Running"),
                PodPhase::Running => self
                    .world
                    .objects
                    .set_pod_ready(&self.set, ordinal, true, now),
                _ => return Ok(()),
            }
            pods = self.world.objects.pods_of(&self.set);
            // The result must not depend on the order in which a cache lists pods.
            pods.shuffle(&mut self.random);
        }
        self.sync(&pods).await?;
        self.reread();
        self.check(invariants)
    }

    /// Syncs the current set, which must not fail.
    pub(super) async fn sync(&self, pods: &[Arc<Pod>]) -> Result<SyncOutcome, Failure> {
        let mut outcome = self.world.reconcile(&self.set, pods).await;
        match outcome.error.take() {
            Some(error) => Err(Failure::Sync(error)),
            None => Ok(outcome),
        }
    }

    /// Checks the invariants of the current set.
    pub(super) fn check(&self, invariants: Invariants) -> Result<(), Failure> {
        invariants(&self.set, &self.world.objects).map_err(Failure::Violated)
    }

    /// Upstream: `updateComplete`.
    fn is_update_complete(&self) -> bool {
        let (set, status) = (&self.set, &self.set.status);
        let pods = self.world.objects.pods_of(set);
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
        let claims = self.world.objects.claims.cache().list();
        claims.iter().map(|claim| claim.name.to_string()).collect()
    }

    /// Fails unless exactly the claims of wanted pods are left, plus the other claims if the policy
    /// retains them.
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
        let wrong = format!("claims {left:?} are left instead of {kept:?}");
        Err(Failure::Violated(wrong))
    }

    /// Removes the claims that a missing pod owns, by name.
    fn collect_garbage(&self) {
        let pods: BTreeSet<String> = self.pod_names().into_iter().collect();
        for claim in self.world.objects.claims.cache().list() {
            let pod = claim_pod_name(&self.set, &claim.name);
            let owned = |pod: &str| claim.owner_references.iter().any(|o| *o.name == *pod);
            if pod.is_some_and(|pod| !pods.contains(pod) && owned(pod)) {
                let removed = self
                    .world
                    .objects
                    .claims
                    .delete(&claim.namespace, &claim.name);
                removed.expect("cached objects are stored");
            }
        }
    }
}
