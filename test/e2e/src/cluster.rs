//! Clusters whose nodes run pods, with the pod changes that upstream's tests make inside
//! containers.

use integration::World;
use integration::space::{NODES, Patch, SERVICES, Space};
use integration::stateful_sets::name;
use kube_test_control_plane::actors::{ActorsConfig, KubeletConfig};
use serde_json::{Value, json};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS};

use crate::manifests::headless_service;

use stateful_set::behaviour;
pub use stateful_set::{
    POD_PATIENCE, Revisions, SET_PATIENCE, StatefulSet, is_ready, replicas, revision,
};

mod stateful_set;

/// Volumes, which are cluster-scoped.
const PERSISTENT_VOLUMES: Resource = Resource {
    group: "",
    version: "v1",
    plural: "persistentvolumes",
    kind: "PersistentVolume",
};

/// A cluster, the controller and a namespace for the test.
///
/// # Panics
///
/// Panics on drop if the test passed without [`Cluster::finish`]: upstream tears down every test.
pub struct Cluster {
    world: World,
    space: Space,
    finished: bool,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let is_torn_down = self.finished || std::thread::panicking();
        assert!(is_torn_down, "the test ends without `Cluster::finish`");
    }
}

impl Cluster {
    /// Starts a cluster with all control plane components, the controller, and the pods' headless
    /// service.
    pub async fn start(namespace: &str) -> Self {
        Self::with_gates(namespace, FeatureGates::default()).await
    }

    /// Like [`Cluster::start`], with these feature gates.
    pub async fn with_gates(namespace: &str, gates: FeatureGates) -> Self {
        let actors = ActorsConfig::all().kubelet(KubeletConfig::new(behaviour()));
        let world = World::with_nodes(actors, gates).await;
        let space = world.namespace(namespace).await;
        space.create(&SERVICES, &headless_service()).await;
        Self {
            world,
            space,
            finished: false,
        }
    }

    /// Tears down the test's objects like a user: scales every set to 0, waits for its pods and its
    /// status, and deletes it; then deletes the claims and waits for their volumes.
    ///
    /// Upstream: `DeleteAllStatefulSets`.
    pub async fn finish(mut self) {
        self.finished = true;
        let space = &self.space;
        for set in space.list(&STATEFUL_SETS, "").await {
            let set = self.set(&set);
            set.scale(0).await;
            set.until_counts(&[("replicas", 0)]).await;
            space.delete(&STATEFUL_SETS, set.name(), None).await;
            let gone = async || {
                let found = space.find(&STATEFUL_SETS, set.name(), "").await;
                found.is_none().then_some(())
            };
            SET_PATIENCE.until("the set is gone", gone).await;
        }
        // The garbage collector deletes the pods of sets that the test has deleted.
        let gone = async || {
            let pods = space.list(&PODS, "").await;
            (!pods.iter().any(is_of_a_set)).then_some(())
        };
        SET_PATIENCE
            .until("the pods of all sets are gone", gone)
            .await;
        for claim in space.list(&PERSISTENT_VOLUME_CLAIMS, "").await {
            // The garbage collector may be deleting the claims of the pods that are gone.
            space
                .ensure_deleted(&PERSISTENT_VOLUME_CLAIMS, name(&claim))
                .await;
        }
        let gone = async || {
            let claims = space.list(&PERSISTENT_VOLUME_CLAIMS, "").await;
            let volumes = space.elsewhere("").list(&PERSISTENT_VOLUMES, "").await;
            let is_ours = |volume: &Value| volume["spec"]["claimRef"]["namespace"] == space.name();
            (claims.is_empty() && !volumes.iter().any(is_ours)).then_some(())
        };
        SET_PATIENCE
            .until("claims and volumes are gone", gone)
            .await;
    }

    /// A ready, schedulable node.
    ///
    /// Upstream: `GetRandomReadySchedulableNode`.
    pub async fn node(&self) -> Value {
        let found = async || {
            let nodes = self.space.list_everywhere(&NODES, "").await;
            let takes_pods = |node: &Value| {
                node["spec"]["unschedulable"] != true && node["spec"]["taints"].is_null()
            };
            let mut nodes = nodes.into_iter();
            nodes.find(|node| is_ready(node) && takes_pods(node))
        };
        POD_PATIENCE.until("a node is ready", found).await
    }

    /// Namespace of the test.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Creates a set.
    pub async fn create(&self, set: &Value) -> StatefulSet<'_> {
        let created = self.space.create(&STATEFUL_SETS, set).await;
        self.set(&created)
    }

    fn set(&self, stored: &Value) -> StatefulSet<'_> {
        StatefulSet::new(&self.space, &self.world, stored)
    }

    /// Makes the readiness probe of a running pod succeed or fail from now on.
    pub async fn set_probe(&self, pod: &str, succeeds: bool) {
        let pods = self.world.pods();
        pods.set_ready(self.space.name(), pod, succeeds).await;
    }

    /// Lets a paused pod become ready, and later pods of its name: the marker file is on its
    /// volume.
    ///
    /// Upstream: `ResumeNextPod`.
    pub async fn resume(&self, pod: &str) {
        let pods = self.world.pods();
        pods.behave(self.space.name(), pod, behaviour()).await;
    }

    /// Makes the containers of a pod exit with code 1 when stopped.
    pub async fn fail_on_stop(&self, pod: &str) {
        let failing = behaviour().stop_exit_code(1);
        let pods = self.world.pods();
        pods.behave(self.space.name(), pod, failing).await;
    }

    /// Makes a node schedulable, or not.
    pub async fn set_schedulable(&self, node: &str, schedulable: bool) {
        let patch = json!({"spec": {"unschedulable": !schedulable}});
        let cluster = self.space.elsewhere("");
        cluster.patch(&NODES, node, "", Patch::Merge, &patch).await;
    }
}

/// Returns true if a set created a pod: such pods have a label with their name.
fn is_of_a_set(pod: &Value) -> bool {
    pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"].is_string()
}
