//! The garbage collector.

use std::time::Duration;

use crate::support::{Plane, define_widgets, eventually};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::GarbageCollectorConfig;
use kube_test_control_plane::audit::AuditEntry;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn with_owner(plane: &Plane, policy: &str, block: bool) -> (String, String) {
    let owner = plane
        .create(MAPS, &json!({"metadata": {"name": "owner"}}))
        .await;
    let reference = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": block,
    });
    let dependent = json!({"metadata": {
        "name": "dependent",
        "ownerReferences": [reference],
        "finalizers": ["example.com/hold"],
    }});
    plane.create(MAPS, &dependent).await;
    let (owner, dependent) = (format!("{MAPS}/owner"), format!("{MAPS}/dependent"));
    plane
        .call(
            Method::DELETE,
            &owner,
            &json!({"propagationPolicy": policy}),
        )
        .await;
    (owner, dependent)
}

async fn release(plane: &Plane, path: &str) {
    let body = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["example.com/hold"],
    }});
    plane.call(Method::PATCH, path, &body).await;
}

async fn collecting() -> Plane {
    Plane::new(
        TestControlPlane::builder()
            .garbage_collector()
            .start()
            .await,
    )
}

#[tokio::test(start_paused = true)]
async fn background_deletion_deletes_dependents_afterwards() {
    let plane = collecting().await;
    let (owner, dependent) = with_owner(&plane, "Background", true).await;
    assert_eq!(plane.code(&owner).await, 404);
    eventually(|| async { plane.is_deleting(&dependent).await }).await;
    release(&plane, &dependent).await;
    assert_eq!(plane.code(&dependent).await, 404);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_waits_for_blocking_dependents() {
    for blocks in [true, false] {
        let plane = collecting().await;
        let (owner, dependent) = with_owner(&plane, "Foreground", blocks).await;
        eventually(|| async { plane.is_deleting(&dependent).await }).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(plane.code(&owner).await, if blocks { 200 } else { 404 });
        release(&plane, &dependent).await;
        eventually(|| async { plane.code(&owner).await == 404 }).await;
        assert_eq!(plane.code(&dependent).await, 404);
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn orphaned_dependents_lose_the_reference() {
    let plane = collecting().await;
    let (owner, dependent) = with_owner(&plane, "Orphan", true).await;
    eventually(|| async { plane.code(&owner).await == 404 }).await;
    let dependent = plane.get(&dependent).await;
    assert!(dependent["metadata"].get("ownerReferences").is_none());
    assert!(dependent["metadata"].get("deletionTimestamp").is_none());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn object_stays_while_one_owner_exists() {
    let plane = collecting().await;
    let mut references = Vec::new();
    for name in ["a", "b"] {
        let owner = plane
            .create(MAPS, &json!({"metadata": {"name": name}}))
            .await;
        let uid = &owner["metadata"]["uid"];
        references.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}));
    }
    let body = json!({"metadata": {"name": "d", "ownerReferences": references}});
    plane.create(MAPS, &body).await;
    let path = format!("{MAPS}/d");
    plane
        .call(Method::DELETE, &format!("{MAPS}/a"), &json!({}))
        .await;
    eventually(|| async {
        plane.get(&path).await["metadata"]["ownerReferences"]
            .as_array()
            .unwrap()
            .len()
            == 1
    })
    .await;
    plane
        .call(Method::DELETE, &format!("{MAPS}/b"), &json!({}))
        .await;
    eventually(|| async { plane.code(&path).await == 404 }).await;

    // An owner that never existed is absent, too.
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "no"});
    let body = json!({"metadata": {"name": "d", "ownerReferences": [reference]}});
    plane.create(MAPS, &body).await;
    eventually(|| async { plane.code(&path).await == 404 }).await;
    plane.stop().await;
}

fn reference(owner: &Value) -> Value {
    let metadata = &owner["metadata"];
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "blockOwnerDeletion": true,
    })
}

async fn map(plane: &Plane, name: &str, owners: &[&Value]) -> Value {
    let owners: Vec<Value> = owners.iter().map(|owner| reference(owner)).collect();
    let body = json!({"metadata": {"name": name, "ownerReferences": owners}});
    plane.create(MAPS, &body).await
}

#[tokio::test(start_paused = true)]
async fn owner_in_another_namespace_is_absent() {
    let plane = collecting().await;
    let owner = map(&plane, "owner", &[]).await;
    let body = json!({"metadata": {"name": "d", "ownerReferences": [reference(&owner)]}});
    let elsewhere = "/api/v1/namespaces/kube-public/configmaps";
    plane.create(elsewhere, &body).await;
    eventually(|| async { plane.code(&format!("{elsewhere}/d")).await == 404 }).await;
    // A cluster-scoped object can't refer to a namespaced owner, so it stays.
    plane.create("/api/v1/nodes", &body).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(plane.code("/api/v1/nodes/d").await, 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn owner_with_another_uid_is_absent() {
    let plane = collecting().await;
    let mut owner = map(&plane, "real", &[]).await;
    owner["metadata"]["uid"] = json!("22222222-1111-1111-1111-111111111111");
    map(&plane, "d", &[&owner]).await;
    eventually(|| async { plane.code(&format!("{MAPS}/d")).await == 404 }).await;
    assert_eq!(plane.code(&format!("{MAPS}/real")).await, 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_reaches_dependents_of_dependents() {
    let plane = collecting().await;
    let a = map(&plane, "a", &[]).await;
    let b = map(&plane, "b", &[&a]).await;
    map(&plane, "c", &[&b]).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    plane.call(Method::PATCH, &format!("{MAPS}/c"), &hold).await;
    let foreground = json!({"propagationPolicy": "Foreground"});
    plane
        .call(Method::DELETE, &format!("{MAPS}/a"), &foreground)
        .await;
    eventually(|| async { plane.is_deleting(&format!("{MAPS}/c")).await }).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    for (name, finalizers) in [("a", "foregroundDeletion"), ("b", "foregroundDeletion")] {
        let object = plane.get(&format!("{MAPS}/{name}")).await;
        assert_eq!(
            object["metadata"]["finalizers"],
            json!([finalizers]),
            "{name}"
        );
    }
    release(&plane, &format!("{MAPS}/c")).await;
    for name in ["a", "b", "c"] {
        eventually(|| async { plane.code(&format!("{MAPS}/{name}")).await == 404 }).await;
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_resolves_owner_cycles() {
    let plane = collecting().await;
    let a = map(&plane, "a", &[]).await;
    let b = map(&plane, "b", &[&a]).await;
    let owned = json!({"metadata": {"ownerReferences": [reference(&b)]}});
    plane
        .call(Method::PATCH, &format!("{MAPS}/a"), &owned)
        .await;
    let foreground = json!({"propagationPolicy": "Foreground"});
    plane
        .call(Method::DELETE, &format!("{MAPS}/a"), &foreground)
        .await;
    for name in ["a", "b"] {
        eventually(|| async { plane.code(&format!("{MAPS}/{name}")).await == 404 }).await;
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dependent_with_another_owner_drops_a_waiting_one() {
    let plane = collecting().await;
    let (a, b) = (map(&plane, "a", &[]).await, map(&plane, "b", &[]).await);
    map(&plane, "d", &[&a, &b]).await;
    let foreground = json!({"propagationPolicy": "Foreground"});
    plane
        .call(Method::DELETE, &format!("{MAPS}/a"), &foreground)
        .await;
    eventually(|| async { plane.code(&format!("{MAPS}/a")).await == 404 }).await;
    let dependent = plane.get(&format!("{MAPS}/d")).await;
    assert_eq!(
        dependent["metadata"]["ownerReferences"],
        json!([reference(&b)])
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deletions_have_preconditions() {
    let plane = collecting().await;
    let owner = map(&plane, "owner", &[]).await;
    let dependent = map(&plane, "d", &[&owner]).await;
    plane
        .call(Method::DELETE, &format!("{MAPS}/owner"), &json!({}))
        .await;
    eventually(|| async { plane.code(&format!("{MAPS}/d")).await == 404 }).await;
    let deletions = plane.0.server().audit().matching(|entry| {
        entry.user_agent == "test-control-plane/garbage-collector" && entry.name == "d"
    });
    let bodies: Vec<Value> = deletions.iter().map(AuditEntry::body_value).collect();
    let metadata = &dependent["metadata"];
    let expected = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
        "propagationPolicy": "Background",
    });
    assert_eq!(bodies, [expected]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn collection_can_be_delayed() {
    let config = GarbageCollectorConfig::default().delay(Duration::from_secs(20));
    let builder = TestControlPlane::builder();
    let builder = builder.configure_actors(|actors| actors.garbage_collector = Some(config));
    let plane = Plane::new(builder.start().await);
    let owner = map(&plane, "owner", &[]).await;
    map(&plane, "d", &[&owner]).await;
    plane
        .call(Method::DELETE, &format!("{MAPS}/owner"), &json!({}))
        .await;
    let started = tokio::time::Instant::now();
    eventually(|| async { plane.code(&format!("{MAPS}/d")).await == 404 }).await;
    assert_eq!(started.elapsed().as_secs(), 20);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn compacted_log_loses_no_dependent() {
    let plane = collecting().await;
    let owner = map(&plane, "owner", &[]).await;
    for i in 0..10 {
        map(&plane, &format!("d-{i}"), &[&owner]).await;
    }
    let store = plane.0.server().store();
    plane
        .call(Method::DELETE, &format!("{MAPS}/owner"), &json!({}))
        .await;
    // The collector has seen none of these writes and never will.
    store.compact(store.revision());
    eventually(|| async { store.list("configmaps", "default").1.is_empty() }).await;
    plane.stop().await;
}

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn widget(name: &str, owner: Option<&Value>) -> Value {
    let mut widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name},
    });
    if let Some(owner) = owner {
        widget["metadata"]["ownerReferences"] = json!([{
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": true,
        }]);
    }
    widget
}

#[tokio::test(start_paused = true)]
async fn custom_resources_own_and_are_owned() {
    for policy in ["Background", "Foreground"] {
        let plane = collecting().await;
        define_widgets(&plane).await;
        let owner = plane.create(WIDGETS, &widget("owner", None)).await;
        let middle = plane.create(WIDGETS, &widget("middle", Some(&owner))).await;
        let mut last = widget("last", Some(&middle));
        last["apiVersion"] = json!("v1");
        last["kind"] = json!("ConfigMap");
        plane.create(MAPS, &last).await;
        let options = json!({"propagationPolicy": policy});
        plane
            .call(Method::DELETE, &format!("{WIDGETS}/owner"), &options)
            .await;
        for path in [
            format!("{MAPS}/last"),
            format!("{WIDGETS}/middle"),
            format!("{WIDGETS}/owner"),
        ] {
            eventually(|| async { plane.code(&path).await == 404 }).await;
        }
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn orphaned_custom_resources_lose_the_reference() {
    let plane = collecting().await;
    define_widgets(&plane).await;
    let owner = plane.create(WIDGETS, &widget("owner", None)).await;
    plane.create(WIDGETS, &widget("kept", Some(&owner))).await;
    let options = json!({"propagationPolicy": "Orphan"});
    plane
        .call(Method::DELETE, &format!("{WIDGETS}/owner"), &options)
        .await;
    eventually(|| async { plane.code(&format!("{WIDGETS}/owner")).await == 404 }).await;
    let kept = plane.get(&format!("{WIDGETS}/kept")).await;
    let references = kept["metadata"].get("ownerReferences");
    assert!(references.is_none_or(|list| *list == json!([])), "{kept}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn custom_resource_without_its_owner_is_collected() {
    let plane = collecting().await;
    define_widgets(&plane).await;
    let gone = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "gone", "uid": "no-such-uid"},
    });
    plane.create(WIDGETS, &widget("lonely", Some(&gone))).await;
    eventually(|| async { plane.code(&format!("{WIDGETS}/lonely")).await == 404 }).await;
    plane.stop().await;
}
