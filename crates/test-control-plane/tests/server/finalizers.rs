//! Finalizers: kube's helper, and names without a domain.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Event, finalizer};
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

use crate::support::{Plane, exchange};

/// The helper sends a JSON patch that tests for null at a missing path.
#[tokio::test(start_paused = true)]
async fn finalizer_helper_adds_applies_and_cleans_up() {
    let plane = TestControlPlane::builder().start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(plane.client());
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let (applied, cleaned) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let reconcile = async || {
        let map = Arc::new(maps.get("a").await.unwrap());
        let reconciled = finalizer(&maps, "example.com/cleanup", map, |event| {
            let counter = match event {
                Event::Apply(_) => &applied,
                Event::Cleanup(_) => &cleaned,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, std::io::Error>(Action::await_change()) }
        });
        reconciled.await.unwrap();
    };
    let counts = || {
        (
            applied.load(Ordering::Relaxed),
            cleaned.load(Ordering::Relaxed),
        )
    };

    reconcile().await;
    let finalizers = maps.get("a").await.unwrap().metadata.finalizers.unwrap();
    assert_eq!(
        (finalizers.as_slice(), counts()),
        (&["example.com/cleanup".to_owned()][..], (0, 0))
    );
    reconcile().await;
    assert_eq!(counts(), (1, 0));
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    reconcile().await;
    assert_eq!(counts(), (1, 1));
    assert!(maps.get_opt("a").await.unwrap().is_none());
    plane.stop().await;
}

/// Sends an object, and returns the status code and the warnings.
async fn send(plane: &Plane, method: Method, path: &str, body: &Value) -> (u16, Vec<String>) {
    let headers = [("Content-Type", "application/json")];
    let answer = exchange(plane.0.server(), method, path, &headers, body.to_string()).await;
    let warnings = answer.headers.get_all("warning").iter();
    let warnings = warnings.map(|warning| warning.to_str().unwrap().to_owned());
    (answer.code, warnings.collect())
}

/// A custom resource's finalizers need no domain; only clients that add such a one are warned.
#[tokio::test(start_paused = true)]
async fn custom_finalizer_without_a_path_is_stored_with_a_warning() {
    use crate::custom_resources::{DEFINITIONS, WIDGETS, definition};

    let plane = Plane::new(TestControlPlane::builder().start().await);
    plane.create(DEFINITIONS, &definition()).await;
    let widget = |finalizers: Value| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1},
            "metadata": {"name": "a", "finalizers": finalizers},
        })
    };
    let warning = |name: &str, path: &str| {
        format!(
            "299 - \"metadata.finalizers: \\\"{name}\\\": prefer a domain-qualified finalizer \
             name{path} to avoid accidental conflicts with other finalizer writers\""
        )
    };
    let with_path = warning("widgets.example.com", " including a path (/)");

    let created = widget(json!(["widgets.example.com", "example.com/a", "orphan"]));
    let answer = send(&plane, Method::POST, WIDGETS, &created).await;
    assert_eq!(answer, (201, vec![with_path]));
    let path = format!("{WIDGETS}/a");
    let stored = plane.get(&path).await;
    assert_eq!(
        stored["metadata"]["finalizers"],
        created["metadata"]["finalizers"]
    );
    let mut updated = widget(json!(["widgets.example.com", "bare"]));
    updated["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    let answer = send(&plane, Method::PUT, &path, &updated).await;
    assert_eq!(answer, (200, vec![warning("bare", "")]));
    let invalid = widget(json!(["not valid"]));
    let answer = send(&plane, Method::POST, WIDGETS, &invalid).await;
    assert_eq!(answer, (422, vec![]));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn built_in_kinds_differ_in_finalizers_without_a_domain() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let object = |version: &str, kind: &str| {
        json!({
            "apiVersion": version, "kind": kind,
            "metadata": {"name": "a", "finalizers": ["bare"]},
        })
    };
    for (path, object, code) in [
        (
            "/api/v1/namespaces/default/configmaps",
            object("v1", "ConfigMap"),
            422,
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            object("coordination.k8s.io/v1", "Lease"),
            201,
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            object(
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
            ),
            201,
        ),
    ] {
        assert_eq!(
            send(&plane, Method::POST, path, &object).await,
            (code, vec![]),
            "{path}"
        );
    }
    plane.stop().await;
}
