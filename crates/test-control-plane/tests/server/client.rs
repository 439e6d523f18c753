//! A kube-rs client on the service, without sockets.

use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube_test_control_plane::{TestControlPlane, UnknownFields};
use serde_json::json;

fn pod(name: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "img:1"}]},
    }))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn client_creates_reads_updates_and_deletes() {
    let plane = TestControlPlane::builder().start().await;
    let pods: Api<Pod> = Api::default_namespaced(plane.client());
    let created = pods
        .create(&PostParams::default(), &pod("a"))
        .await
        .unwrap();
    assert_eq!(created.metadata.generation, Some(1));
    let list = pods
        .list(&ListParams::default().labels("app=x"))
        .await
        .unwrap();
    assert_eq!(list.items.len(), 1);
    let params = PatchParams::default();
    let patch = Patch::Merge(json!({"metadata": {"labels": {"app": "y"}}}));
    let patched = pods.patch("a", &params, &patch).await.unwrap();
    assert_eq!(patched.metadata.labels.unwrap()["app"], "y");
    let mut stale = created.clone();
    stale.metadata.labels = None;
    let error = pods
        .replace("a", &PostParams::default(), &stale)
        .await
        .unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.reason == "Conflict"));
    pods.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(pods.get_opt("a").await.unwrap().is_none());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watch_delivers_changes() {
    let plane = TestControlPlane::builder().start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(plane.client());
    let mut events = Box::pin(maps.watch(&WatchParams::default(), "0").await.unwrap());
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "m"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    maps.delete("m", &DeleteParams::default()).await.unwrap();
    let first = events.try_next().await.unwrap().unwrap();
    assert!(matches!(first, WatchEvent::Added(m) if m.metadata.name.as_deref() == Some("m")));
    let second = events.try_next().await.unwrap().unwrap();
    assert!(matches!(second, WatchEvent::Deleted(_)));
}

#[tokio::test(start_paused = true)]
async fn stateful_set_gets_defaults_and_keeps_unknown_fields() {
    let plane = TestControlPlane::builder()
        .unknown_fields(UnknownFields::Keep)
        .start()
        .await;
    let sets: Api<kube::api::DynamicObject> = {
        let resource = kube::api::ApiResource::erase::<StatefulSet>(&());
        Api::default_namespaced_with(plane.client(), &resource)
    };
    let set = serde_json::from_value(json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i", "fromTheFuture": {"a": 1}}]},
            },
        },
    }))
    .unwrap();
    let set = sets.create(&PostParams::default(), &set).await.unwrap();
    assert_eq!(set.data["spec"]["replicas"], 1);
    assert_eq!(
        set.data["status"],
        json!({"replicas": 0, "availableReplicas": 0})
    );
    let container = &set.data["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["fromTheFuture"], json!({"a": 1}));
}
