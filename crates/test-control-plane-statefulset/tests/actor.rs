//! StatefulSets with all actors.

#![expect(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, in helpers too"
)]

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube_test_control_plane::audit::Settle;
use kube_test_control_plane::faults::RequestMatcher;
use kube_test_control_plane::route::Verb;
use kube_test_control_plane::{TestControlPlane, TestControlPlaneBuilder};
use serde_json::{Value, json};

fn builder() -> TestControlPlaneBuilder {
    let builder = TestControlPlane::builder().all_actors();
    builder.actor(kube_test_control_plane_statefulset::controller())
}

fn set(replicas: u32) -> StatefulSet {
    let set = json!({
        "metadata": {"name": "web"},
        "spec": {
            "serviceName": "web", "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "registry.example/web:1"}]},
            },
        },
    });
    serde_json::from_value(set).unwrap()
}

async fn settle(plane: &TestControlPlane) {
    let settled = Settle::quiet_for(Duration::from_secs(60));
    plane.server().audit().settle(&settled).await.unwrap();
}

/// The names of the ready pods.
async fn ready_pods(plane: &TestControlPlane) -> Vec<String> {
    let pods: Api<Pod> = Api::default_namespaced(plane.client());
    let pods = pods.list(&ListParams::default()).await.unwrap();
    let is_ready = |pod: &Pod| {
        let conditions = pod
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        conditions
            .clone()
            .any(|it| it.type_ == "Ready" && it.status == "True")
    };
    let ready = pods.items.iter().filter(|pod| is_ready(pod));
    ready
        .map(|pod| pod.metadata.name.clone().unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn set_becomes_ready_scales_and_is_deleted_with_its_pods() {
    let plane = builder().start().await;
    let sets: Api<StatefulSet> = Api::default_namespaced(plane.client());
    sets.create(&PostParams::default(), &set(2)).await.unwrap();
    settle(&plane).await;
    assert_eq!(ready_pods(&plane).await, ["web-0", "web-1"]);
    let status = sets.get("web").await.unwrap().status.unwrap();
    assert_eq!(
        (status.ready_replicas, status.available_replicas),
        (Some(2), Some(2))
    );
    sets.patch_scale(
        "web",
        &PatchParams::default(),
        &Patch::Merge(json!({"spec": {"replicas": 1}})),
    )
    .await
    .unwrap();
    settle(&plane).await;
    assert_eq!(ready_pods(&plane).await, ["web-0"]);
    sets.delete("web", &DeleteParams::default()).await.unwrap();
    settle(&plane).await;
    assert_eq!(ready_pods(&plane).await, [""; 0]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn requests_count_as_an_actors() {
    let plane = builder().start().await;
    let sets: Api<StatefulSet> = Api::default_namespaced(plane.client());
    let audit = plane.server().audit();
    sets.create(&PostParams::default(), &set(1)).await.unwrap();
    let mark = audit.mark();
    settle(&plane).await;
    audit
        .expect_no_writes(mark, &RequestMatcher::any())
        .unwrap();
    let agent = "test-control-plane/statefulset-controller";
    assert!(!audit.matching(|entry| entry.user_agent == agent).is_empty());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_are_written_only_on_request() {
    for (builder, expected) in [(builder(), 0), (builder().actor_events(), 1)] {
        let plane = builder.start().await;
        let sets: Api<StatefulSet> = Api::default_namespaced(plane.client());
        sets.create(&PostParams::default(), &set(1)).await.unwrap();
        settle(&plane).await;
        let events: Api<Event> = Api::default_namespaced(plane.client());
        let of_set = ListParams::default().fields("involvedObject.kind=StatefulSet");
        let events = events.list(&of_set).await.unwrap();
        assert_eq!(events.items.len(), expected);
        plane.stop().await;
    }
}

fn lease(name: &str, holder: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name},
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    })
}

async fn give_lease_to(plane: &TestControlPlane, name: &str, holder: &str) {
    let leases: Api<Lease> = Api::namespaced(plane.client(), "kube-system");
    let apply = PatchParams::apply("test").force();
    let patch = Patch::Apply(lease(name, holder));
    leases.patch(name, &apply, &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn controller_stops_while_another_one_holds_a_lease() {
    for name in [
        "kube-controller-manager",
        "statefulset-controller-manager",
        "statefulset-controller-manager-shard-0-of-2",
    ] {
        gives_way_to_the_holder_of(name).await;
    }
}

async fn gives_way_to_the_holder_of(name: &str) {
    let plane = builder().start().await;
    let sets: Api<StatefulSet> = Api::default_namespaced(plane.client());
    sets.create(&PostParams::default(), &set(1)).await.unwrap();
    settle(&plane).await;
    give_lease_to(&plane, name, "other").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let scale = async |replicas: u32| {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let params = PatchParams::default();
        sets.patch("web", &params, &patch).await.unwrap();
    };
    scale(2).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(ready_pods(&plane).await, ["web-0"]);
    // The other one releases the lease.
    give_lease_to(&plane, name, "").await;
    settle(&plane).await;
    assert_eq!(ready_pods(&plane).await, ["web-0", "web-1"]);
    // It takes the lease again, and dies.
    give_lease_to(&plane, name, "other").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    scale(3).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(ready_pods(&plane).await.len(), 2);
    tokio::time::sleep(Duration::from_secs(10)).await;
    settle(&plane).await;
    assert_eq!(ready_pods(&plane).await.len(), 3);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn actor_that_is_added_twice_runs_once() {
    let controller = kube_test_control_plane_statefulset::controller;
    let plane = builder().actor(controller()).start().await;
    let sets: Api<StatefulSet> = Api::default_namespaced(plane.client());
    sets.create(&PostParams::default(), &set(3)).await.unwrap();
    settle(&plane).await;
    let audit = plane.server().audit();
    let creations = audit.matching(|entry| {
        entry.verb == Verb::Create && entry.resource == "pods" && entry.subresource.is_empty()
    });
    assert_eq!(creations.len(), 3);
    plane.stop().await;
}
