//! Whole syncs with in-memory objects.

#![expect(
    clippy::unnecessary_wraps,
    reason = "expected values have the type of the actual values"
)]

use kube_apimachinery::object_key::ObjectKey;
use serde_json::{Value, json};
use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::testing::Call;
use statefulset_controller_util::testing::builders::{self, Builder};
use statefulset_history::RevisionData;

use super::*;
use crate::testing::{Counts, INJECTED, World};
use crate::waiting::Waiting;

mod claim_growth;
mod conditions;
mod creation;
mod ended_pods;
mod failures;
mod hypotheses;
mod in_place;
mod recreate;
mod removal_gate;
mod repair;
mod revisions;
mod rollout_limit;
mod scale_down;
mod truncation;
mod update;
mod versions;

/// A world with one set.
fn world(set: &Builder<StatefulSet>) -> World {
    with_gates(set, FeatureGates::default())
}

fn with_max_unavailable(set: &Builder<StatefulSet>) -> World {
    let gates = FeatureGates::default().max_unavailable_stateful_set(true);
    with_gates(set, gates)
}

/// A world whose sets may opt in to everything.
fn opted_in(set: &Builder<StatefulSet>) -> World {
    with_gates(set, FeatureGates::default().with_opt_ins())
}

fn with_gates(set: &Builder<StatefulSet>, gates: FeatureGates) -> World {
    World::new(set.build(), gates)
}

impl World {
    /// Syncs and makes new pods ready until the set has no reason to wait.
    async fn settle(&mut self) {
        for _ in 0..50 {
            let waiting = self.step().await;
            self.run_all();
            if waiting.is_none() {
                self.step().await;
                self.events();
                return;
            }
        }
        panic!("the set doesn't settle");
    }

    fn run_all(&self) {
        for pod in self.pods() {
            self.run(&pod);
        }
    }

    fn pod_revision(&self, name: &str) -> String {
        self.pod(name).revision().to_owned()
    }
}

/// Name of a set's newly created revision.
fn revision_name(set: &Builder<StatefulSet>) -> String {
    let set = set.build();
    let data = RevisionData::new(&set.spec.template).unwrap();
    statefulset_history::NewRevision::new(&set, &data, 1, 0).name
}

fn web() -> Builder<StatefulSet> {
    builders::set("web").replicas(3)
}

/// A pod of the set's current revision.
fn pod(set: &Builder<StatefulSet>, ordinal: i32) -> Builder<Pod> {
    builders::pod(&set.build(), ordinal).revision(&revision_name(set))
}

fn not_ready(pod: &str) -> Option<Waiting> {
    Some(Waiting::PodNotReady(pod.into()))
}
