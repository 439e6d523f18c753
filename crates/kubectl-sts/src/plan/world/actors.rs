//! The nodes and kubelets of the copy.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kube_test_control_plane::actors::{
    ActorsConfig, GarbageCollectorConfig, KubeletConfig, NodeConfig, NodesConfig, Outcome,
    PodBehaviour, PodMatcher, SchedulerConfig, Stop, VolumeBinderConfig,
};

use crate::model::{Pod, median_start};
use crate::plan::situation::Situation;

/// Time in which a deleted pod stops.
const STOP: Duration = Duration::from_secs(1);
/// Seconds after which an unready pod counts as broken.
const BROKEN_SECONDS: i64 = 120;
/// Seconds after the end of its grace period after which a pod counts as hanging.
const HANGING_SECONDS: i64 = 30;
/// Nodes beyond those of the existing pods.
const SPARE_NODES: usize = 3;

/// Median of the seconds that the existing pods took to become ready.
pub(super) fn seconds_to_ready(situation: &Situation<'_>) -> Option<i64> {
    median_start(pods(situation))
}

/// Nodes with ample room, and pods that behave like the existing ones.
pub(super) fn actors(situation: &Situation<'_>, estimate: Duration) -> ActorsConfig {
    let behaviour = PodBehaviour::default()
        .start_delay(estimate)
        .stop_delay(STOP);
    let mut kubelet = KubeletConfig::new(behaviour.clone());
    // The copy lacks secrets, config maps and service accounts: users rarely may read them.
    kubelet.ignores_missing_references = true;
    for pod in situation.snapshot.pods() {
        let of_pod = |first: Option<u32>| {
            PodMatcher::default()
                .namespace(situation.namespace)
                .name(&pod.metadata.name)
                .first(first)
        };
        if is_hanging(pod, situation.now) {
            let hanging = behaviour.clone().stop(Stop::Hangs);
            kubelet = kubelet.when(of_pod(Some(1)), hanging);
        } else if is_broken(pod, situation.now) {
            let broken = behaviour.clone().outcome(Outcome::NeverReady);
            kubelet = kubelet.when(of_pod(Some(1)), broken);
        } else if let Some(seconds) = pod.start_seconds().and_then(|it| u64::try_from(it).ok()) {
            let own = behaviour.clone().start_delay(Duration::from_secs(seconds));
            kubelet = kubelet.when(of_pod(None), own);
        }
    }
    ActorsConfig::default()
        .nodes(NodesConfig::default().nodes(nodes(situation)))
        .kubelet(kubelet)
        .scheduler(SchedulerConfig::default())
        .volume_binder(VolumeBinderConfig::default())
        .garbage_collector(GarbageCollectorConfig::default())
}

/// The pods of the existing set.
fn pods<'a>(situation: &'a Situation<'_>) -> impl Iterator<Item = &'a Pod> {
    let set = situation.set().into_iter();
    set.flat_map(|set| situation.snapshot.pods_of(set))
}

fn is_hanging(pod: &Pod, now: Timestamp) -> bool {
    let deadline = pod.metadata.deletion_timestamp;
    deadline.is_some_and(|deadline| now.duration_since(deadline).as_secs() >= HANGING_SECONDS)
}

fn is_broken(pod: &Pod, now: Timestamp) -> bool {
    let since = pod
        .condition("Ready")
        .and_then(|ready| ready.last_transition_time);
    let since = since.or(pod.metadata.creation_timestamp);
    let age = since.map_or(0, |since| now.duration_since(since).as_secs());
    !pod.is_ready() && age >= BROKEN_SECONDS
}

/// The nodes of the existing pods, and spare ones with the labels that the pods select.
fn nodes(situation: &Situation<'_>) -> Vec<NodeConfig> {
    let mut names: BTreeSet<String> = situation
        .snapshot
        .pods()
        .map(|pod| pod.spec.node_name.clone())
        .filter(|name| !name.is_empty())
        .collect();
    let wanted = situation
        .set()
        .map_or(0, |set| usize::try_from(set.replicas()).unwrap_or_default());
    let wanted = wanted.min(100) + SPARE_NODES;
    names.extend((0..wanted).map(|number| format!("planned-node-{number}")));
    let labels: BTreeMap<String, String> = pods(situation)
        .flat_map(|pod| pod.spec.node_selector.clone())
        .collect();
    let node = |name: &String| NodeConfig::new(name).labels(labels.clone());
    names.iter().map(node).collect()
}
