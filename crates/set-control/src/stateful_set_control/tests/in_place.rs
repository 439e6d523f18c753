//! Updates of running pods.

use statefulset_opt_ins::{Carrier, IN_PLACE_LABEL, Wait};

use super::*;

/// A set whose pods have these cores and this tier, and which asks for updates in place.
fn sized(cpu: &str, tier: &str) -> Builder<StatefulSet> {
    web()
        .annotation(Carrier::InPlace.annotation(), "resources")
        .with(
            "spec.template.spec.containers.0.resources.requests.cpu",
            cpu,
        )
        .with("spec.template.metadata.labels.tier", tier)
}

/// A settled set of three pods, whose nodes report their resources.
async fn running(set: &Builder<StatefulSet>) -> World {
    running_with(set, FeatureGates::default().with_opt_ins()).await
}

async fn running_with(set: &Builder<StatefulSet>, gates: FeatureGates) -> World {
    let mut world = with_gates(set, gates);
    world.settle().await;
    for ordinal in 0..3 {
        carry_out(&world, ordinal);
    }
    world
}

/// The node gives the pod's containers the resources of its spec.
fn carry_out(world: &World, ordinal: i32) {
    world.change_pod(ordinal, |pod| {
        let resources = pod["spec"]["containers"][0]["resources"].clone();
        let name = pod["spec"]["containers"][0]["name"].clone();
        pod["status"]["containerStatuses"] = json!([{"name": name, "resources": resources}]);
    });
}

/// The node reports that the resize waits.
fn pend(world: &World, ordinal: i32, reason: &str) {
    world.change_pod(ordinal, |pod| {
        let pending = json!({"type": "PodResizePending", "status": "True", "reason": reason});
        pod["status"]["conditions"]
            .as_array_mut()
            .unwrap()
            .push(pending);
    });
}

fn cpu(world: &World, ordinal: i32) -> String {
    let pod = world.pod_json(ordinal);
    let cpu = &pod["spec"]["containers"][0]["resources"]["requests"]["cpu"];
    cpu.as_str().unwrap().to_owned()
}

fn in_place(pod: &str) -> Option<Waiting> {
    Some(Wait::InPlaceUpdate(pod.into()).into())
}

fn in_flight(world: &World) -> Vec<String> {
    let pods = world.pods();
    let marked = pods
        .iter()
        .filter(|pod| pod.labels.get(IN_PLACE_LABEL).is_some());
    marked.map(|pod| pod.name.to_string()).collect()
}

/// Moves a pod from its old resources to the new ones.
async fn resize(world: &mut World, ordinal: i32) {
    let name = format!("web-{ordinal}");
    for _ in 0..3 {
        assert_eq!(world.step().await, in_place(&name));
        assert_eq!(in_flight(world), [&*name]);
    }
    carry_out(world, ordinal);
    assert_eq!(world.step().await, in_place(&name));
}

#[tokio::test]
async fn pods_are_resized_one_after_another_from_the_top() {
    let mut world = running(&sized("1", "a")).await;
    let next = sized("2", "b");
    world.apply(&next.clone().generation(2));
    let uids: Vec<_> = world.pods().iter().map(|pod| pod.uid.clone()).collect();
    for ordinal in [2, 1, 0] {
        resize(&mut world, ordinal).await;
        assert_eq!(in_flight(&world), [""; 0]);
        let pod = world.pod(ordinal);
        assert_eq!(pod.revision(), revision_name(&next));
        assert_eq!(pod.labels.get("tier"), Some("b"));
        assert_eq!(cpu(&world, ordinal), "2");
    }
    assert_eq!(world.step().await, None);
    assert_eq!(world.counts(), Counts::all(3));
    assert_eq!(*world.set.status.current_revision, *revision_name(&next));
    let now: Vec<_> = world.pods().iter().map(|pod| pod.uid.clone()).collect();
    assert_eq!(now, uids);
    assert_eq!(world.requests(Call::DeletePod), 0);
    assert_eq!(world.requests(Call::ResizePod), 3);
    let events = world.events();
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(
        events[0].contains("Pod web-2 was updated in place to revision"),
        "{}",
        events[0]
    );
}

#[tokio::test]
async fn metadata_is_written_with_the_revision() {
    let mut world = running(&sized("1", "a")).await;
    let next = sized("1", "b");
    world.apply(&next.clone().generation(2));
    for name in ["web-2", "web-1", "web-0"] {
        assert_eq!(world.step().await, in_place(name));
        assert_eq!(world.pod(name).revision(), revision_name(&next));
        assert_eq!(world.pod(name).labels.get("tier"), Some("b"));
    }
    assert_eq!(world.step().await, None);
    assert_eq!(
        (
            world.requests(Call::UpdatePod),
            world.requests(Call::ResizePod)
        ),
        (3, 0)
    );
}

#[tokio::test]
async fn without_gate_or_annotation_pods_are_replaced() {
    for (set, gates) in [
        (sized("1", "a"), FeatureGates::default()),
        (
            sized("1", "a").without("metadata.annotations"),
            FeatureGates::default().with_opt_ins(),
        ),
    ] {
        let mut world = running_with(&set, gates).await;
        let next = set.with("spec.template.metadata.labels.tier", "b");
        world.apply(&next.generation(2));
        assert_eq!(
            world.step().await,
            Some(Waiting::PodUpdated("web-2".into()))
        );
        assert_eq!(world.requests(Call::UpdatePod), 0);
    }
}

#[tokio::test]
async fn other_changes_replace_the_pod_with_a_reason() {
    let mut world = running(&sized("1", "a")).await;
    world.apply(&sized("2", "a").image("new").generation(2));
    assert_eq!(
        world.step().await,
        Some(Waiting::PodUpdated("web-2".into()))
    );
    let events = world.events();
    let expected = "Normal NotUpdatedInPlace Pod web-2 is replaced, not updated in place: \
                    spec.containers[0].image differs";
    assert!(events.iter().any(|it| it == expected), "{events:?}");
}

#[tokio::test]
async fn infeasible_resize_replaces_the_pod_at_once() {
    let mut world = running(&sized("1", "a")).await;
    world.apply(&sized("2", "a").generation(2));
    world.step().await;
    world.step().await;
    pend(&world, 2, "Infeasible");
    assert_eq!(
        world.step().await,
        Some(Waiting::PodUpdated("web-2".into()))
    );
    assert_eq!(world.pod_names(), ["web-0", "web-1"]);
    let events = world.events().join("\n");
    assert!(events.contains("the resize is infeasible"), "{events}");
}

#[tokio::test]
async fn deferred_resize_replaces_the_pod_after_its_time() {
    let set = |cpu| sized(cpu, "a").annotation(Carrier::InPlaceTimeout.annotation(), "90s");
    let mut world = running(&set("1")).await;
    world.apply(&set("2").generation(2));
    world.step().await;
    world.step().await;
    pend(&world, 2, "Deferred");
    let outcome = world.sync().await;
    assert_eq!(outcome.requeue_after.unwrap().as_secs(), 90);
    world.now += jiff::SignedDuration::from_secs(89);
    assert_eq!(world.step().await, in_place("web-2"));
    world.now += jiff::SignedDuration::from_secs(1);
    assert_eq!(
        world.step().await,
        Some(Waiting::PodUpdated("web-2".into()))
    );
}

#[tokio::test]
async fn refused_resize_replaces_the_pod() {
    let refusals: [fn() -> ApiError; 2] = [
        || ApiError::api(403, "Forbidden", "cannot patch resource \"pods/resize\""),
        || ApiError::api(422, "Invalid", "no"),
    ];
    for refusal in refusals {
        let mut world = running(&sized("1", "a")).await;
        world.apply(&sized("2", "a").generation(2));
        world.step().await;
        world.fail_with(Call::ResizePod, 0, refusal);
        assert_eq!(
            world.step().await,
            Some(Waiting::PodUpdated("web-2".into()))
        );
        let events = world.events().join("\n");
        assert!(events.contains("the API server refused it"), "{events}");
    }
}

#[tokio::test]
async fn failed_request_is_repeated() {
    for call in [Call::UpdatePod, Call::ResizePod] {
        let mut world = running(&sized("1", "a")).await;
        world.apply(&sized("2", "a").generation(2));
        for after in 0..2 {
            world.fail(call, after);
        }
        let mut errors = 0;
        for _ in 0..12 {
            errors += usize::from(world.sync().await.error.is_some());
            carry_out(&world, 2);
        }
        assert!(errors > 0, "{call:?}");
        assert_eq!(cpu(&world, 2), "2");
        assert_eq!(world.requests(Call::DeletePod), 0, "{call:?}");
    }
}

#[tokio::test]
async fn template_corrected_in_flight_moves_the_same_pod() {
    let mut world = running(&sized("1", "a")).await;
    world.apply(&sized("2", "b").generation(2));
    resize(&mut world, 2).await;
    world.step().await;
    world.step().await;
    assert_eq!(
        (in_flight(&world), cpu(&world, 1)),
        (vec!["web-1".to_owned()], "2".to_owned())
    );
    let last = sized("3", "c");
    world.apply(&last.clone().generation(3));
    // The higher pod is outdated as well, but another one is in flight.
    resize(&mut world, 1).await;
    for ordinal in [2, 0] {
        resize(&mut world, ordinal).await;
    }
    assert_eq!(world.step().await, None);
    for pod in world.pods() {
        assert_eq!(pod.revision(), revision_name(&last));
        assert_eq!(pod.labels.get("tier"), Some("c"));
    }
    assert_eq!([0, 1, 2].map(|it| cpu(&world, it)), ["3"; 3]);
    assert_eq!(world.requests(Call::DeletePod), 0);
}

#[tokio::test]
async fn template_taken_back_in_flight_moves_the_pod_back() {
    let first = sized("1", "a");
    let mut world = running(&first).await;
    world.apply(&sized("2", "b").generation(2));
    world.step().await;
    world.step().await;
    assert_eq!(cpu(&world, 2), "2");
    carry_out(&world, 2);
    world.apply(&first.clone().generation(3));
    resize(&mut world, 2).await;
    assert_eq!(world.step().await, None);
    assert_eq!(cpu(&world, 2), "1");
    assert_eq!(world.pod_revision("web-2"), revision_name(&first));
    assert_eq!(world.pod("web-2").labels.get("tier"), Some("a"));
    assert_eq!(world.requests(Call::DeletePod), 0);
}

#[tokio::test]
async fn pod_that_cannot_return_is_replaced() {
    let first = sized("1", "a");
    let mut world = running(&first).await;
    world.apply(&sized("2", "b").generation(2));
    world.step().await;
    world.step().await;
    world.apply(&first.clone().generation(3));
    world.step().await;
    world.step().await;
    pend(&world, 2, "Infeasible");
    world.step().await;
    assert_eq!(world.pod_names(), ["web-0", "web-1"]);
}

#[tokio::test]
async fn pause_and_partition_move_the_pod_back() {
    let paused = |set: Builder<StatefulSet>| set.annotation(Carrier::Paused.annotation(), "true");
    for hold in [paused, |set: Builder<StatefulSet>| set.partition(3)] {
        let first = sized("1", "a");
        let mut world = running(&first).await;
        world.apply(&sized("2", "b").generation(2));
        world.step().await;
        world.step().await;
        carry_out(&world, 2);
        world.apply(&hold(sized("2", "b").generation(3)));
        resize(&mut world, 2).await;
        assert_eq!(world.step().await, None);
        assert_eq!(
            (cpu(&world, 2), in_flight(&world).len()),
            ("1".to_owned(), 0)
        );
        assert_eq!(world.pod_revision("web-2"), revision_name(&first));
    }
}

#[tokio::test]
async fn pod_given_up_comes_back_before_a_higher_one_is_replaced() {
    let set = |cpu: &str| sized(cpu, "a").parallel();
    let mut world = running(&set("1")).await;
    world.apply(&set("2").generation(2));
    resize(&mut world, 2).await;
    world.step().await;
    world.step().await;
    assert_eq!(in_flight(&world), ["web-1"]);
    world.apply(&set("2").image("other").generation(3));
    world.step().await;
    assert_eq!(world.pod_names(), ["web-0", "web-2"]);
    // This sync creates the pod, and the next ones wait for it.
    for _ in 0..3 {
        let waiting = Waiting::UpdatedPodUnavailable("web-1".into());
        assert_eq!(world.step().await, Some(waiting));
        assert_eq!(world.pod_names(), ["web-0", "web-1", "web-2"]);
    }
    world.run("web-1");
    world.step().await;
    assert_eq!(world.pod_names(), ["web-0", "web-1"]);
}

#[tokio::test]
async fn opted_out_in_flight_replaces_the_pod() {
    let mut world = running(&sized("1", "a")).await;
    world.apply(&sized("2", "b").generation(2));
    world.step().await;
    world.step().await;
    let out = sized("2", "b").annotation(Carrier::InPlace.annotation(), "none");
    world.apply(&out.generation(3));
    assert_eq!(
        world.step().await,
        Some(Waiting::PodUpdated("web-2".into()))
    );
}

#[tokio::test]
async fn gate_off_in_flight_replaces_the_pod() {
    let mut world = running(&sized("1", "a")).await;
    world.apply(&sized("2", "b").generation(2));
    world.step().await;
    world.step().await;
    world.restart(FeatureGates::default());
    assert_eq!(
        world.step().await,
        Some(Waiting::PodUpdated("web-2".into()))
    );
    world.step().await;
    assert_eq!(in_flight(&world), [""; 0]);
}

#[tokio::test]
async fn unready_pod_in_flight_is_replaced_when_given_up() {
    let mut world = running(&sized("1", "a")).await;
    world.apply(&sized("2", "b").generation(2));
    world.step().await;
    world.step().await;
    pend(&world, 2, "Infeasible");
    world.change_pod(2, |pod| {
        pod["status"]["conditions"][0]["status"] = "False".into();
    });
    world.step().await;
    assert_eq!(world.pod_names(), ["web-0", "web-1"]);
}

/// A parallel set that may update two pods at a time.
fn in_pairs(cpu: &str) -> Builder<StatefulSet> {
    sized(cpu, "a").parallel().max_unavailable(2)
}

/// A settled world whose set then asks for other cores, for two pods at a time.
async fn resized_in_pairs() -> World {
    let gates = FeatureGates::default()
        .with_opt_ins()
        .max_unavailable_stateful_set(true);
    let mut world = running_with(&in_pairs("1"), gates).await;
    world.apply(&in_pairs("2").generation(2));
    world
}

#[tokio::test]
async fn budget_limits_the_pods_given_up() {
    let mut world = resized_in_pairs().await;
    world.step().await;
    world.step().await;
    assert_eq!(in_flight(&world), ["web-1", "web-2"]);
    world.change_pod(0, |pod| {
        pod["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
    });
    for ordinal in [1, 2] {
        pend(&world, ordinal, "Infeasible");
    }
    world.step().await;
    assert_eq!(world.requests(Call::DeletePod), 1);
}

#[tokio::test]
async fn budget_limits_the_pods_in_flight() {
    let mut world = resized_in_pairs().await;
    for _ in 0..4 {
        assert_eq!(world.step().await, in_place("web-2"));
        assert_eq!(in_flight(&world), ["web-1", "web-2"]);
    }
    // Only one of the two may be replaced by another.
    carry_out(&world, 2);
    world.step().await;
    assert_eq!(in_flight(&world), ["web-1"]);
    world.step().await;
    assert_eq!(in_flight(&world), ["web-0", "web-1"]);
    world.apply(&in_pairs("2").image("other").generation(3));
    world.step().await;
    let down = 3 - world.pod_names().len();
    assert!(
        down + in_flight(&world).len() <= 2,
        "{:?}",
        world.pod_names()
    );
}
