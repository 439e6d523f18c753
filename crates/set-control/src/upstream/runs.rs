//! Runs of a test, over retention policies and over random walks with different seeds.

use statefulset_client::feature_gates::FeatureGates;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;

use super::fixtures::Walk;

/// Walks per test, each with another seed.
const WALKS: u64 = 2;
/// Variable with one seed for all tests, such as a failed test's seed.
pub(super) const SEED_VARIABLE: &str = "STATEFULSET_WALK_SEED";

/// `whenScaled` and `whenDeleted`; `None` is a set without a policy.
type Policy = Option<(&'static str, &'static str)>;

/// Upstream runs the first twice: as `Retain`, and without a name as its sets' default.
const POLICIES: [Policy; 5] = [
    Some(("Retain", "Retain")),
    Some(("Delete", "Retain")),
    Some(("Retain", "Delete")),
    Some(("Delete", "Delete")),
    None,
];

/// One run of a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    policy: Policy,
    /// Seed of the drivers' random choices.
    pub(super) seed: u64,
}

impl Run {
    /// Returns the walks under each retention policy.
    ///
    /// Upstream: `runTestOverPVCRetentionPolicies`.
    pub(super) fn policies() -> impl Iterator<Item = Self> {
        POLICIES
            .into_iter()
            .flat_map(|policy| Self::walks().map(move |run| Self { policy, ..run }))
    }

    /// Returns the walks under the sets' default policy, `Retain`.
    pub(super) fn walks() -> impl Iterator<Item = Self> {
        let seeds = match std::env::var(SEED_VARIABLE) {
            Ok(seed) => {
                let seed = seed.parse().expect("a walk's seed is a number");
                seed..=seed
            }
            Err(_) => 1..=WALKS,
        };
        seeds.map(|seed| Self {
            policy: POLICIES[0],
            seed,
        })
    }

    fn on(self, set: Builder<StatefulSet>) -> StatefulSet {
        let path = "spec.persistentVolumeClaimRetentionPolicy";
        match self.policy {
            Some((when_scaled, when_deleted)) => set.retention(when_scaled, when_deleted),
            None => set.without(path),
        }
        .build()
    }

    /// Creates a cluster that stores the set.
    pub(super) fn stored(self, set: Builder<StatefulSet>) -> Walk {
        let walk = self.unstored(set);
        walk.world.store(&walk.set);
        walk
    }

    /// Creates a cluster without the set: its first status write stores it.
    pub(super) fn unstored(self, set: Builder<StatefulSet>) -> Walk {
        Walk::new(self.on(set), self, FeatureGates::default())
    }

    /// Creates a cluster without the set, with the gate `MaxUnavailableStatefulSet`.
    pub(super) fn with_max_unavailable(self, set: Builder<StatefulSet>) -> Walk {
        let gates = FeatureGates {
            max_unavailable_stateful_set: true,
            ..FeatureGates::default()
        };
        self.with_gates(set, gates)
    }

    /// Creates a cluster without the set, with these gates.
    pub(super) fn with_gates(self, set: Builder<StatefulSet>, gates: FeatureGates) -> Walk {
        Walk::new(self.on(set), self, gates)
    }
}
