//! Walks of a set from one state to another, for every retention policy and several seeds: pods
//! become ready in random order, one step between two syncs, and the invariants are checked after
//! each step.
//!
//! Reexports the names that a case needs from other files:
//!
//! - [`World`] and its verbs, in `crates/set-control/src/testing/world.rs`;
//! - [`set`], upstream's set, and [`claim_pod_name`], in
//!   `crates/controller-util/src/testing/upstream.rs`;
//! - [`Builder`], whose methods change such a set before it is built, in `builders.rs` of the same
//!   folder; [`stateful_set_pod`] builds a pod of a set;
//! - [`Counts`], the numbers of pods in a status: `Counts::all(3).updated(1)`;
//! - [`invariants`], checked after each step: `monotonic` for ordered sets, in which no pod runs
//!   before its predecessor and no ordinal is missing; `burst` for parallel sets; `update` during an
//!   update. All three check the identity, volumes and claims of each pod;
//! - [`Call`], named after the request that fails: `world.fail(Call::DeletePod, 1)` lets one deletion
//!   pass and fails the next with [`INJECTED`].

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_apimachinery::pod::PodPhase;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::pod::{Pod, PodName};
use statefulset_controller_util::stateful_set::{
    ClaimRetentionPolicyType, StatefulSet, UpdateStrategyType,
};
use statefulset_pod_control::PodSlot;
use statefulset_pod_control::stateful_set_utils::ordinal;

use crate::outcome::SyncOutcome;

pub(super) use crate::testing::{Counts, INJECTED, World, stateful_set_pod};
pub(super) use crate::testing::{Invariants, invariants};
pub(super) use statefulset_controller_util::testing::Call;
pub(super) use statefulset_controller_util::testing::builders::Builder;
pub(super) use statefulset_controller_util::testing::upstream::{claim_pod_name, set};

/// Name that upstream gives the revision of upstream's set.
pub(super) const NGINX_REVISION: &str = "foo-674c887789";
/// Name that upstream gives the revision of upstream's set with the image `foo`.
pub(super) const FOO_REVISION: &str = "foo-758f94cd5c";

/// Walks per test and policy, each with another seed.
const SEEDS: u64 = 2;
/// Variable with one seed for all tests, such as a failed test's seed.
const SEED_VARIABLE: &str = "STATEFULSET_WALK_SEED";
/// Maximum number of turns per driver; more than any walk here needs.
const TURNS_MAX: usize = 2_000;
/// Time that the clock advances between two turns, in seconds.
const TURN_SECONDS: i64 = 1;

/// `whenScaled` and `whenDeleted`; `None` is a set without a policy. Upstream runs the first twice:
/// as `Retain`, and without a name as its sets' default.
const POLICIES: [Option<(&str, &str)>; 5] = [
    Some(("Retain", "Retain")),
    Some(("Delete", "Retain")),
    Some(("Retain", "Delete")),
    Some(("Delete", "Delete")),
    None,
];

/// Returns worlds that store the set, under each retention policy.
///
/// Upstream: `runTestOverPVCRetentionPolicies`.
pub(super) fn policies(set: Builder<StatefulSet>) -> impl Iterator<Item = World> {
    let path = "spec.persistentVolumeClaimRetentionPolicy";
    POLICIES.into_iter().flat_map(move |policy| {
        walks(match policy {
            Some((when_scaled, when_deleted)) => set.clone().retention(when_scaled, when_deleted),
            None => set.clone().without(path),
        })
    })
}

/// Returns worlds that store the set.
pub(super) fn walks(set: Builder<StatefulSet>) -> impl Iterator<Item = World> {
    walks_with(FeatureGates::default(), set)
}

/// Returns worlds that store the set, with these gates.
pub(super) fn walks_with(
    gates: FeatureGates,
    set: Builder<StatefulSet>,
) -> impl Iterator<Item = World> {
    let seeds = match std::env::var(SEED_VARIABLE) {
        Ok(seed) => {
            let seed = seed.parse().expect("a walk's seed is a number");
            seed..=seed
        }
        Err(_) => 1..=SEEDS,
    };
    seeds.map(move |seed| {
        let mut world = World::new(set.build(), gates);
        world.random = StdRng::seed_from_u64(seed);
        let policy = &world.set.spec.claim_retention_policy;
        world.case = format!("{policy:?}; {SEED_VARIABLE}={seed} runs this seed alone");
        world
    })
}

/// Runs each case `row: body(replicas, …)` for ordered sets as the test `row::monotonic` and for
/// parallel ones as `row::burst`, under every retention policy: `body(world, …, invariants)`.
macro_rules! in_both_modes {
    ($($row:ident: $body:ident($replicas:literal $(, $argument:expr)*);)*) => {$(
        mod $row {
            use crate::tests::upstream::walks::{invariants, policies, set};

            #[tokio::test]
            async fn monotonic() {
                for world in policies(set($replicas)) {
                    super::super::$body(world, $($argument,)* invariants::monotonic).await;
                }
            }

            #[tokio::test]
            async fn burst() {
                for world in policies(set($replicas).parallel()) {
                    super::super::$body(world, $($argument,)* invariants::burst).await;
                }
            }
        }
    )*};
}
pub(super) use in_both_modes;

/// Reason for a driver to stop early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("a sync failed: {0}")]
    Sync(String),
    #[error("an invariant is violated: {0}")]
    Violated(String),
    #[error("the set doesn't reach its desired state")]
    Stuck,
}

/// Fails unless the driver stopped with the injected failure.
#[track_caller]
pub(super) fn assert_injected(result: Result<(), Failure>) {
    match result {
        Err(Failure::Sync(error)) => assert_eq!(error, INJECTED),
        other => panic!("no sync failed: {other:?}"),
    }
}

/// Returns the number at the end of a pod's name.
pub(super) fn ordinal_of(pod: &Pod) -> i32 {
    let ordinal = ordinal(&pod.name).expect("pods have ordinals");
    ordinal.to_string().parse().expect("an ordinal is a number")
}

fn succeeded(outcome: SyncOutcome) -> Result<(), Failure> {
    match outcome.error {
        Some(error) => Err(Failure::Sync(error.to_string())),
        None => Ok(()),
    }
}

impl World {
    /// Makes pods ready until the set has its desired number of ready pods.
    ///
    /// Upstream: `scaleUpStatefulSetControl`.
    pub(super) async fn scale_up(&mut self, invariants: Invariants) -> Result<(), Failure> {
        for _ in 0..TURNS_MAX {
            if self.set.status.ready_replicas >= self.set.spec.replicas {
                return self.holds(invariants);
            }
            self.turn(invariants).await?;
        }
        Err(Failure::Stuck)
    }

    /// Removes pods until the set has its desired number, then the claims owned by the removed
    /// pods. Upstream never checks the remaining claims.
    ///
    /// Upstream: `scaleDownStatefulSetControl`.
    pub(super) async fn scale_down(&mut self, invariants: Invariants) -> Result<(), Failure> {
        let before = self.claim_names();
        for _ in 0..TURNS_MAX {
            if self.set.status.replicas <= self.set.spec.replicas {
                self.collect_garbage();
                self.check_claims_left(before)?;
                return self.holds(invariants);
            }
            let mut pods = self.pods();
            if let Some(last) = pods.last().cloned() {
                succeeded(self.sync().await)?;
                self.add_terminating_pod(ordinal_of(&last));
                succeeded(self.sync().await)?;
                pods = self.pods();
                if let Some(last) = pods.last() {
                    self.remove_pod(last);
                }
            }
            // The last pod is gone, but the cache doesn't show that yet.
            succeeded(self.sync_pods(&pods).await)?;
            self.holds(invariants)?;
        }
        Err(Failure::Stuck)
    }

    /// Makes pods ready until the update is complete. Of the previously ready pods only one may be
    /// down at a time, which upstream doesn't check.
    ///
    /// Upstream: `updateStatefulSetControl`.
    pub(super) async fn roll_out(&mut self) -> Result<(), Failure> {
        let mut up = self.running_and_ready();
        up.retain(|pod| self.is_desired(pod));
        succeeded(self.sync().await)?;
        for _ in 0..TURNS_MAX {
            self.check_one_down(&up)?;
            if self.is_update_complete() {
                return Ok(());
            }
            self.turn(invariants::update).await?;
        }
        Err(Failure::Stuck)
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
            for pod in self.pods() {
                if !pod.is_created() {
                    self.set_phase(&pod, "Pending");
                }
            }
            succeeded(self.sync().await)?;
            self.holds(invariants)?;
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
            let pods = self.pods();
            succeeded(self.sync_pods(&pods).await)?;
            succeeded(self.sync_pods(&pods).await)?;
            if self.set.status.replicas <= self.set.spec.replicas {
                return self.holds(invariants);
            }
        }
        Err(Failure::Stuck)
    }

    /// Returns the slots of the existing pods.
    pub(super) fn slots(&self) -> Vec<PodSlot> {
        let slot = |pod: Arc<Pod>| PodSlot::Existing(ordinal_of(&pod).into(), pod);
        self.pods().into_iter().map(slot).collect()
    }

    /// One turn: a new pod becomes pending, a random pod takes one step, and the set is synced.
    async fn turn(&mut self, invariants: Invariants) -> Result<(), Failure> {
        self.now += jiff::SignedDuration::from_secs(TURN_SECONDS);
        if let Some(new) = self.pods().iter().find(|pod| !pod.is_created()) {
            self.set_phase(new, "Pending");
        }
        let mut pods = self.pods();
        if !pods.is_empty() {
            let pod = &pods[self.random.random_range(0..pods.len())];
            match pod.phase {
                PodPhase::Pending => self.set_phase(pod, "Running"),
                PodPhase::Running => self.set_ready(pod, true),
                _ => return Ok(()),
            }
            pods = self.pods();
            // The result must not depend on the order in which a cache lists pods.
            pods.shuffle(&mut self.random);
        }
        succeeded(self.sync_pods(&pods).await)?;
        self.holds(invariants)
    }

    fn holds(&self, invariants: Invariants) -> Result<(), Failure> {
        self.check(invariants).map_err(Failure::Violated)
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
        let mut pods = self.pods();
        pods.retain(|pod| pod.is_running_and_ready());
        pods.iter().map(|pod| pod.name.to_string()).collect()
    }

    /// True if the set wants a pod of this name.
    fn is_desired(&self, pod: &str) -> bool {
        ordinal(&PodName::from(pod)).is_some_and(|ordinal| ordinal.index_in(&self.set).is_some())
    }

    /// Upstream: `updateComplete`.
    fn is_update_complete(&self) -> bool {
        let (set, status, pods) = (&self.set, &self.set.status, self.pods());
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
        let claims = self.claims();
        claims.iter().map(|claim| claim.name.to_string()).collect()
    }

    /// Fails unless exactly the claims of desired pods are left, plus the other claims if the
    /// policy retains them.
    fn check_claims_left(&self, before: BTreeSet<String>) -> Result<(), Failure> {
        let mut kept = before;
        if self.set.spec.claim_retention_policy.when_scaled == ClaimRetentionPolicyType::Delete {
            kept.retain(|claim| {
                let pod = claim_pod_name(&self.set, claim);
                pod.is_some_and(|pod| self.is_desired(pod))
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
        let pods = self.pod_names();
        for claim in self.claims() {
            let pod = claim_pod_name(&self.set, &claim.name);
            let owned = |pod: &str| claim.owner_references.iter().any(|o| *o.name == *pod);
            if pod.is_some_and(|pod| !pods.iter().any(|it| it == pod) && owned(pod)) {
                self.remove_claim(&claim.name);
            }
        }
    }
}
