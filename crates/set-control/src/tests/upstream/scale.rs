//! Scaling and replacement of pods: the test bodies that upstream runs for ordered and parallel
//! sets.

use kube_apimachinery::pod::PodPhase;
use rand::RngExt as _;
use statefulset_controller_util::pod::POD_INDEX_LABEL;

use super::walks::{
    Call, Counts, INJECTED, Invariants, World, assert_injected, in_both_modes, ordinal_of,
};

mod test_stateful_set_control {
    super::in_both_modes! {
        create_pods: create_pods(3);
        scales_up: scales_up(3);
        scales_down: scales_down(3);
        replaces_pods: replaces_pods(5);
        recreates_failed_pod: recreates_ended_pod(3, "Failed");
        recreates_succeeded_pod: recreates_ended_pod(3, "Succeeded");
        recreates_failed_pod_with_delete_failure: recreates_after_failure(3, "Failed");
        recreates_succeeded_pod_with_delete_failure: recreates_after_failure(3, "Succeeded");
        create_pod_failure: create_pod_failure(3);
        update_pod_failure: update_pod_failure(3);
        update_set_status_failure: update_set_status_failure(3);
        new_revision_delete_pod_failure: new_revision_delete_pod_failure(3);
        recreates_pvc_for_pending_pod: recreates_pvc_for_pending_pod(3);
    }
}

async fn create_pods(mut world: World, invariants: Invariants) {
    world.scale_up(invariants).await.unwrap();
    assert_eq!(world.counts(), Counts::all(3));
    assert_eq!(world.pods().len(), 3);
    for pod in world.pods() {
        let index = ordinal_of(&pod).to_string();
        assert_eq!(pod.labels.get(POD_INDEX_LABEL), Some(&*index));
    }
}

async fn scales_up(mut world: World, invariants: Invariants) {
    let mut original = world.set.clone();
    world.scale_up(invariants).await.unwrap();
    // This copy has no status yet.
    original.spec.replicas = 4;
    world.set = original;
    world.scale_up(invariants).await.unwrap();
    assert_eq!(world.counts(), Counts::all(4));
}

async fn scales_down(mut world: World, invariants: Invariants) {
    world.scale_up(invariants).await.unwrap();
    world.scale(0);
    world.scale_down(invariants).await.unwrap();
    assert_eq!(world.counts(), Counts::all(0));
    // Upstream doesn't check that no pod is left.
    assert!(world.pods().is_empty());
}

/// Upstream looks the claims up by the volume's name, finds none, and checks nothing. It also stops
/// checking the invariants after the first scale-up.
async fn replaces_pods(mut world: World, invariants: Invariants) {
    world.scale_up(invariants).await.unwrap();
    assert_eq!(world.set.status.replicas, 5);
    assert_eq!(world.claims().len(), 5);
    for claim in world.claims() {
        let pod = world.pod(claim.name.trim_start_matches("datadir-"));
        let mut owners = claim.owner_references.iter();
        assert!(owners.all(|owner| owner.uid != pod.uid));
    }
    for pod in [0, 2, 4] {
        world.remove_pod(pod);
    }
    for pod in [0, 2, 4] {
        world.step().await;
        world.set_phase(pod, "Running");
        world.step().await;
        world.set_ready(pod, true);
    }
    world.step().await;
    assert_eq!(world.counts(), Counts::all(5));
    world.check(invariants).unwrap();
}

/// Runs the first sync, makes one pod terminal and the others pending, and returns the terminal
/// pod's ordinal. Upstream lists pods in any order, so in parallel sets any pod may be the one.
async fn end_one_of_the_first_pods(world: &mut World, phase: &str, invariants: Invariants) -> i32 {
    world.step().await;
    world.check(invariants).unwrap();
    assert_eq!(world.requests(Call::DeletePod), 0);
    let pods = world.pods();
    let creations = if world.set.spec.allows_burst() { 3 } else { 1 };
    assert_eq!(world.requests(Call::CreatePod), creations);
    let ended = ordinal_of(&pods[world.random.random_range(0..pods.len())]);
    for pod in &pods {
        let is_ended = ordinal_of(pod) == ended;
        world.set_phase(pod, if is_ended { phase } else { "Pending" });
    }
    ended
}

/// Checks that the terminal pod is deleted and then recreated, with these total deletions.
async fn ended_pod_comes_back(
    world: &mut World,
    ended: i32,
    deletions: usize,
    invariants: Invariants,
) {
    let name = format!("foo-{ended}");
    let created = world.requests(Call::CreatePod);
    world.step().await;
    world.check(invariants).unwrap();
    assert_eq!(world.requests(Call::DeletePod), deletions);
    assert!(!world.pod_names().contains(&name));
    world.step().await;
    world.check(invariants).unwrap();
    assert_eq!(world.requests(Call::DeletePod), deletions);
    assert_eq!(world.requests(Call::CreatePod), created + 1);
    assert_eq!(world.pod(ended).phase, PodPhase::None);
}

async fn recreates_ended_pod(mut world: World, phase: &str, invariants: Invariants) {
    let ended = end_one_of_the_first_pods(&mut world, phase, invariants).await;
    ended_pod_comes_back(&mut world, ended, 1, invariants).await;
}

async fn recreates_after_failure(mut world: World, phase: &str, invariants: Invariants) {
    let ended = end_one_of_the_first_pods(&mut world, phase, invariants).await;
    world.fail(Call::DeletePod, 0);
    assert_eq!(world.sync_error().await, INJECTED);
    world.check(invariants).unwrap();
    assert_eq!(world.requests(Call::DeletePod), 1);
    ended_pod_comes_back(&mut world, ended, 2, invariants).await;
}

/// The second creation fails, in parallel sets one of the second batch.
async fn create_pod_failure(mut world: World, invariants: Invariants) {
    world.fail(Call::CreatePod, 1);
    assert_injected(world.scale_up(invariants).await);
    world.scale_up(invariants).await.unwrap();
    assert_eq!(world.counts(), Counts::all(3));
}

/// No pod is updated while pods are created; a pod with a wrong name is, and that update fails.
async fn update_pod_failure(mut world: World, invariants: Invariants) {
    world.fail(Call::UpdatePod, 0);
    world.scale_up(invariants).await.unwrap();
    assert_eq!(world.counts(), Counts::all(3));
    let mut pods = world.pods();
    assert_eq!(pods.len(), 3);
    let mut renamed = world.pod_json(0);
    renamed["metadata"]["name"] = "goo-0".into();
    pods[0] = world.objects.pods.put(renamed);
    let error = world.sync_pods(&pods).await.error.unwrap();
    assert_eq!(error.to_string(), INJECTED);
    assert_eq!(world.requests(Call::UpdatePod), 1);
}

/// The second write of a status fails.
async fn update_set_status_failure(mut world: World, invariants: Invariants) {
    world.fail(Call::UpdateStatus, 1);
    assert_injected(world.scale_up(invariants).await);
    world.scale_up(invariants).await.unwrap();
    assert_eq!(world.counts(), Counts::all(3));
}

async fn new_revision_delete_pod_failure(mut world: World, invariants: Invariants) {
    world.scale_up(invariants).await.unwrap();
    assert_eq!(world.set.status.replicas, 3);
    world.change_image("nginx-new");
    world.fail(Call::DeletePod, 0);
    assert_eq!(world.sync_error().await, INJECTED);
    let status = &world.set.status;
    assert_eq!(status.current_replicas, 3);
    assert_ne!(status.current_revision, status.update_revision);
    world.check(invariants).unwrap();
    world.step().await;
    assert_eq!(world.set.status.current_replicas, 2);
    world.check(invariants).unwrap();
    // Upstream doesn't check which pod was deleted.
    assert_eq!(world.pod_names(), ["foo-0", "foo-1"]);
}

async fn recreates_pvc_for_pending_pod(mut world: World, invariants: Invariants) {
    world.step().await;
    world.check(invariants).unwrap();
    world.remove_claim("datadir-foo-0");
    world.set_phase(0, "Pending");
    world.step().await;
    world.check(invariants).unwrap();
    // Upstream's check of ordered sets accepts a missing claim if scaling down deletes it.
    assert!(world.claim("datadir-foo-0").is_some());
}
