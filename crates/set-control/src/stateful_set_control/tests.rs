//! Whole syncs with in-memory objects.

#![expect(
    clippy::unnecessary_wraps,
    reason = "expected values have the type of the actual values"
)]

use kube_apimachinery::object_key::ObjectKey;
use serde_json::{Value, json};
use statefulset_client::error::Error as ApiError;
use statefulset_controller_util::testing::builders::{self, Builder};
use statefulset_history::RevisionData;

use super::*;
use crate::testing::World;
use crate::waiting::Waiting;

mod creation;
mod ended_pods;
mod failures;
mod hypotheses;
mod recreate;
mod revisions;
mod scale_down;
mod truncation;
mod update;
mod versions;

fn world(set: &Builder<StatefulSet>) -> World {
    with_gates(set, FeatureGates::default())
}

fn with_max_unavailable(set: &Builder<StatefulSet>) -> World {
    let gates = FeatureGates {
        max_unavailable_stateful_set: true,
        ..FeatureGates::default()
    };
    with_gates(set, gates)
}

/// A world with one set.
fn with_gates(set: &Builder<StatefulSet>, gates: FeatureGates) -> World {
    let world = World::new(gates);
    world.store(&set.build());
    world
}

impl World {
    fn set(&self) -> Arc<StatefulSet> {
        self.objects.sets.get("ns", "web").unwrap()
    }

    /// Replaces the set and keeps the recorded status.
    fn change(&self, set: &Builder<StatefulSet>) {
        let status = Arc::clone(&self.set().status);
        let mut set = set.build();
        set.status = status;
        self.objects.sets.add(set);
    }

    fn put(&self, pod: &Builder<Pod>) {
        self.objects.pods.put(pod.json());
    }

    /// Makes a stored pod running and ready.
    fn run(&self, name: &str) {
        let mut pod = self.objects.pods.json("ns", name).unwrap();
        pod["status"] = builders::pod(&self.set(), 0).json()["status"].clone();
        self.objects.pods.put(pod);
    }

    fn pods(&self) -> Vec<String> {
        let pods = self.objects.pods.cache().list();
        pods.iter().map(|pod| pod.name.to_string()).collect()
    }

    async fn sync(&self) -> SyncOutcome {
        let pods = self.objects.pods.cache().list();
        self.reconcile(&self.set(), &pods).await
    }

    /// Runs a sync that must not fail, and returns the set's reason to wait.
    async fn step(&self) -> Option<Waiting> {
        let outcome = self.sync().await;
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        assert!(outcome.status.is_some());
        outcome.waiting
    }

    /// Syncs and makes new pods ready until the set has no reason to wait.
    async fn settle(&self) {
        for _ in 0..50 {
            let waiting = self.step().await;
            for name in self.pods() {
                self.run(&name);
            }
            if waiting.is_none() {
                self.step().await;
                self.recorder.drain();
                return;
            }
        }
        panic!("the set doesn't settle");
    }

    /// Returns the recorded `replicas`, ready, available, current and updated counts.
    fn counts(&self) -> [i32; 5] {
        let status = &self.set().status;
        [
            status.replicas,
            status.ready_replicas,
            status.available_replicas,
            status.current_replicas,
            status.updated_replicas,
        ]
    }

    fn pod_revision(&self, name: &str) -> String {
        let pod = self.objects.pods.cache().get("ns", name).unwrap();
        pod.revision().to_owned()
    }
}

/// Name of a set's newly created revision.
fn revision_name(set: &Builder<StatefulSet>) -> String {
    let set = set.build();
    let data = RevisionData::new(&set.spec.template).unwrap();
    statefulset_history::NewRevision::new(&set, &data, 1, 0).name
}

fn boom() -> ApiError {
    ApiError::api(500, "InternalError", "boom")
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
