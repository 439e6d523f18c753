//! The namespace controller.

use std::time::Duration;

use crate::support::{Plane, define_widgets, eventually};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{
    KubeletConfig, NamespaceControllerConfig, Outcome, PodBehaviour,
};
use serde_json::{Value, json};

const NAMESPACE: &str = "/api/v1/namespaces/n";

fn slow() -> KubeletConfig {
    KubeletConfig::new(
        PodBehaviour::default()
            .stop_delay(Duration::from_secs(5))
            .outcome(Outcome::Ready),
    )
}

#[tokio::test(start_paused = true)]
async fn terminating_namespace_is_emptied_first() {
    let builder = TestControlPlane::builder()
        .kubelet(slow())
        .namespace_controller();
    let plane = Plane::new(builder.start().await);
    plane
        .create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}))
        .await;
    plane
        .create(
            "/api/v1/namespaces/n/configmaps",
            &json!({"metadata": {"name": "c"}}),
        )
        .await;
    plane
        .create("/api/v1/namespaces/n/pods", &crate::support::pod("p"))
        .await;
    let pod = "/api/v1/namespaces/n/pods/p";
    eventually(|| async { crate::support::is_ready(&plane.get(pod).await) }).await;
    let (_, namespace) = plane
        .call(Method::DELETE, "/api/v1/namespaces/n", &json!({}))
        .await;
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let body = json!({"metadata": {"name": "late"}});
    let (code, status) = plane
        .call(Method::POST, "/api/v1/namespaces/n/configmaps", &body)
        .await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    assert_eq!(
        status["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    eventually(|| async { plane.code("/api/v1/namespaces/n").await == 404 }).await;
    assert_eq!(plane.code(pod).await, 404);
    plane.stop().await;
}

async fn namespace(plane: &Plane, objects: &[(&str, Value)]) {
    plane
        .create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}))
        .await;
    for (resource, object) in objects {
        plane
            .create(&format!("{NAMESPACE}/{resource}"), object)
            .await;
    }
}

fn conditions(namespace: &Value) -> Vec<(String, String, String, String)> {
    let text = |c: &Value, member: &str| c[member].as_str().unwrap().to_owned();
    let list = namespace["status"]["conditions"].as_array().unwrap();
    list.iter()
        .map(|c| {
            (
                text(c, "type"),
                text(c, "status"),
                text(c, "reason"),
                text(c, "message"),
            )
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn pods_go_first_and_conditions_list_remaining_objects() {
    let builder = TestControlPlane::builder().kubelet(slow());
    let plane = Plane::new(builder.namespace_controller().start().await);
    let held = json!({"metadata": {"name": "c", "finalizers": ["example.com/hold"]}});
    namespace(
        &plane,
        &[("configmaps", held), ("pods", crate::support::pod("p"))],
    )
    .await;
    let pod = format!("{NAMESPACE}/pods/p");
    eventually(|| async { crate::support::is_ready(&plane.get(&pod).await) }).await;
    plane.call(Method::DELETE, NAMESPACE, &json!({})).await;
    eventually(|| async { plane.is_deleting(&pod).await }).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let map = format!("{NAMESPACE}/configmaps/c");
    assert!(!plane.is_deleting(&map).await);
    let found = conditions(&plane.get(NAMESPACE).await);
    let ok = |kind: &str, reason: &str, message: &str| {
        (
            kind.to_owned(),
            "False".to_owned(),
            reason.to_owned(),
            message.to_owned(),
        )
    };
    let rest = [
        ok(
            "NamespaceDeletionDiscoveryFailure",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        ok(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        ok(
            "NamespaceDeletionContentFailure",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
    ];
    assert_eq!(found[..3], rest);
    assert_eq!(found[3].2, "SomeResourcesRemain");
    assert_eq!(
        found[3].3,
        "Some resources are remaining: pods. has 1 resource instances"
    );
    assert_eq!(found[4].2, "ContentHasNoFinalizers");

    eventually(|| async { plane.is_deleting(&map).await }).await;
    assert_eq!(plane.code(&pod).await, 404);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let found = conditions(&plane.get(NAMESPACE).await);
    assert_eq!(
        found[3].3,
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    assert_eq!(
        (found[4].1.as_str(), found[4].3.as_str()),
        (
            "True",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 \
             resource instances"
        )
    );

    // Without changes, nothing more is written.
    let store = plane.0.server().store();
    let revision = store.revision();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(store.revision(), revision);
    let release = json!({"metadata": {"finalizers": null}});
    plane.call(Method::PATCH, &map, &release).await;
    eventually(|| async { plane.code(NAMESPACE).await == 404 }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn foreign_finalizers_keep_a_namespace() {
    let config = NamespaceControllerConfig::default().delay(Duration::from_secs(5));
    let builder = TestControlPlane::builder();
    let builder = builder.configure_actors(|actors| actors.namespace_controller = Some(config));
    let plane = Plane::new(builder.start().await);
    let map = json!({"metadata": {"name": "c"}});
    namespace(&plane, &[("configmaps", map)]).await;
    let (_, mut namespace) = plane.call(Method::GET, NAMESPACE, &Value::Null).await;
    namespace["spec"]["finalizers"] = json!(["kubernetes", "example.com/keep"]);
    let finalize = format!("{NAMESPACE}/finalize");
    plane.call(Method::PUT, &finalize, &namespace).await;
    plane.call(Method::DELETE, NAMESPACE, &json!({})).await;
    let started = tokio::time::Instant::now();
    let map = format!("{NAMESPACE}/configmaps/c");
    eventually(|| async { plane.code(&map).await == 404 }).await;
    assert_eq!(started.elapsed().as_secs(), 5);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let namespace = plane.get(NAMESPACE).await;
    assert_eq!(namespace["spec"]["finalizers"], json!(["example.com/keep"]));
    let mut done = namespace.clone();
    done["spec"]["finalizers"] = json!([]);
    plane.call(Method::PUT, &finalize, &done).await;
    assert_eq!(plane.code(NAMESPACE).await, 404);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn namespace_deletion_covers_every_kind() {
    let builder = TestControlPlane::builder();
    let plane = Plane::new(builder.namespace_controller().start().await);
    let set = json!({
        "metadata": {"name": "s"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    namespace(
        &plane,
        &[
            ("configmaps", json!({"metadata": {"name": "c"}})),
            ("secrets", json!({"metadata": {"name": "s"}})),
            ("serviceaccounts", json!({"metadata": {"name": "s"}})),
            (
                "services",
                json!({"metadata": {"name": "s"}, "spec": {"clusterIP": "None"}}),
            ),
        ],
    )
    .await;
    plane
        .create("/apis/apps/v1/namespaces/n/statefulsets", &set)
        .await;
    plane.call(Method::DELETE, NAMESPACE, &json!({})).await;
    eventually(|| async { plane.code(NAMESPACE).await == 404 }).await;
    let (_, left) = plane.0.server().store().all();
    assert!(left.iter().all(|object| &*object.key.namespace != "n"));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn custom_resources_end_with_their_namespace() {
    let plane = Plane::new(
        TestControlPlane::builder()
            .namespace_controller()
            .start()
            .await,
    );
    define_widgets(&plane).await;
    plane
        .create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}))
        .await;
    let widgets = "/apis/example.com/v1/namespaces/n/widgets";
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "finalizers": ["example.com/hold"]},
    });
    plane.create(widgets, &widget).await;
    plane.call(Method::DELETE, NAMESPACE, &json!({})).await;
    let path = format!("{widgets}/w");
    eventually(|| async { plane.is_deleting(&path).await }).await;
    eventually(|| async { plane.get(NAMESPACE).await["status"]["conditions"].is_array() }).await;
    let found = conditions(&plane.get(NAMESPACE).await);
    let remaining = "Some resources are remaining: widgets.example.com has 1 resource instances";
    assert!(
        found.iter().any(|(_, _, _, text)| text == remaining),
        "{found:?}"
    );
    let mut widget = plane.get(&path).await;
    widget["metadata"]["finalizers"] = json!([]);
    plane.call(Method::PUT, &path, &widget).await;
    eventually(|| async { plane.code(NAMESPACE).await == 404 }).await;
    plane.stop().await;
}
