//! Creates, updates, patches and subresources beyond the recorded exchanges.

use crate::support::{Plane, pod};
use http::Method;
use kube_test_control_plane::{TestControlPlane, UnknownFields};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn set(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn generated_names_truncate_their_prefix() {
    let plane = plane().await;
    for (prefix, length) in [("abc-".to_owned(), 9), ("a".repeat(80), 63)] {
        let created = plane
            .create(MAPS, &json!({"metadata": {"generateName": prefix}}))
            .await;
        assert_eq!(created["metadata"]["name"].as_str().unwrap().len(), length);
    }
    let body = json!({"metadata": {"name": "n", "generateName": "g-"}});
    assert_eq!(plane.create(MAPS, &body).await["metadata"]["name"], "n");
}

#[tokio::test(start_paused = true)]
async fn create_ignores_identity_fields() {
    let plane = plane().await;
    let body = json!({"metadata": {
        "name": "a",
        "uid": "mine",
        "generation": 9,
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
    }});
    let created = plane.create(MAPS, &body).await;
    let metadata = &created["metadata"];
    assert_ne!(metadata["uid"], "mine");
    assert_eq!(metadata["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(metadata.get("deletionTimestamp"), None);
    // The server counts generations only of kinds with a spec.
    assert_eq!(metadata["generation"], 9);
    let body = json!({"metadata": {"name": "b", "resourceVersion": "1"}});
    let (code, status) = plane.call(Method::POST, MAPS, &body).await;
    assert_eq!((code, status.get("reason")), (500, None));
}

#[tokio::test(start_paused = true)]
async fn unchanged_object_is_not_written() {
    let plane = plane().await;
    plane.create(SETS, &set("web")).await;
    let path = format!("{SETS}/web");
    let before = plane.get(&path).await;
    let revision = plane.0.server().store().revision();
    plane.call(Method::PUT, &path, &before).await;
    plane
        .call(Method::PATCH, &path, &json!({"spec": {"replicas": 1}}))
        .await;
    plane
        .call(
            Method::PATCH,
            &format!("{path}/status"),
            &json!({"status": {}}),
        )
        .await;
    assert_eq!(plane.get(&path).await, before);
    assert_eq!(plane.0.server().store().revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn put_needs_current_uid_and_version() {
    let plane = plane().await;
    plane.create(MAPS, &map("a")).await;
    let path = format!("{MAPS}/a");
    for (member, value, code) in [
        ("uid", "other", 409),
        ("resourceVersion", "1", 409),
        ("resourceVersion", "abc", 500),
        ("resourceVersion", "", 200),
    ] {
        let mut body = plane.get(&path).await;
        body["metadata"][member] = json!(value);
        body["data"] = json!({"k": format!("{member}{value}")});
        assert_eq!(
            plane.call(Method::PUT, &path, &body).await.0,
            code,
            "{member}={value}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn leases_are_created_but_never_blindly_updated_by_put() {
    let plane = plane().await;
    let path = format!("{LEASES}/l");
    let body = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    assert_eq!(plane.call(Method::PUT, &path, &body).await.0, 201);
    let (code, status) = plane.call(Method::PUT, &path, &body).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["details"]["causes"][0]["field"],
        "metadata.resourceVersion"
    );
}

#[tokio::test(start_paused = true)]
async fn times_of_leases_have_six_fraction_digits() {
    let plane = plane().await;
    for (time, code) in [
        ("2026-01-01T00:00:00.123456Z", 201),
        ("2026-01-01T00:00:00Z", 400),
        ("2026-01-01T00:00:00.123Z", 400),
        ("yesterday.000000", 400),
    ] {
        let body = json!({"metadata": {"generateName": "l-"}, "spec": {"renewTime": time}});
        assert_eq!(
            plane.call(Method::POST, LEASES, &body).await.0,
            code,
            "{time}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_are_written_separately() {
    let plane = plane().await;
    plane.create(SETS, &set("web")).await;
    let path = format!("{SETS}/web");
    let mut body = plane.get(&path).await;
    body["spec"]["replicas"] = json!(5);
    body["status"]["replicas"] = json!(5);
    body["metadata"]["labels"] = json!({"a": "b"});
    let (_, updated) = plane
        .call(Method::PUT, &format!("{path}/status"), &body)
        .await;
    assert_eq!(updated["spec"]["replicas"], 1);
    assert_eq!(updated["status"]["replicas"], 5);
    assert_eq!(updated["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(updated["metadata"]["generation"], 1);
    // A status body without a spec is accepted.
    let mut body = updated.clone();
    body.as_object_mut().unwrap().remove("spec");
    body["status"]["readyReplicas"] = json!(1);
    let (code, updated) = plane
        .call(Method::PUT, &format!("{path}/status"), &body)
        .await;
    assert_eq!(
        (code, &updated["status"]["readyReplicas"]),
        (200, &json!(1)),
        "{updated}"
    );
    let patch = json!({"spec": {"replicas": 2}, "status": {"replicas": 9}});
    let (_, updated) = plane.call(Method::PATCH, &path, &patch).await;
    assert_eq!(updated["status"]["replicas"], 5);
    assert_eq!(updated["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn dry_run_stores_nothing() {
    let plane = plane().await;
    let revision = plane.0.server().store().revision();
    let (code, shown) = plane
        .call(Method::POST, &format!("{MAPS}?dryRun=All"), &map("a"))
        .await;
    assert_eq!(code, 201);
    assert!(shown["metadata"].get("resourceVersion").is_none());
    assert_eq!(plane.0.server().store().revision(), revision);
    plane.create(MAPS, &map("a")).await;
    let path = format!("{MAPS}/a");
    let patch = json!({"data": {"k": "v"}});
    let (_, shown) = plane
        .call(Method::PATCH, &format!("{path}?dryRun=All"), &patch)
        .await;
    assert_eq!(shown["data"]["k"], "v");
    plane
        .call(Method::DELETE, &path, &json!({"dryRun": ["All"]}))
        .await;
    assert!(plane.get(&path).await.get("data").is_none());
}

#[tokio::test(start_paused = true)]
async fn pod_spec_is_mostly_immutable() {
    let plane = plane().await;
    plane.create(PODS, &pod("p")).await;
    let path = format!("{PODS}/p");
    let image = json!({"spec": {"containers": [{"name": "c", "image": "img:2"}]}});
    let (code, patched) = plane.call(Method::PATCH, &path, &image).await;
    assert_eq!((code, &patched["metadata"]["generation"]), (200, &json!(2)));
    let volume = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    for patch in [
        volume,
        json!({"spec": {"hostname": "h"}}),
        json!({"spec": {"nodeName": "n"}}),
    ] {
        let (code, status) = plane.call(Method::PATCH, &path, &patch).await;
        assert_eq!(code, 422, "{patch}");
        let message = status["message"].as_str().unwrap();
        assert!(
            message.contains("pod updates may not change fields other than"),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_byte_of_revision_data_is_immutable() {
    let plane = plane().await;
    let post = |data: &str| {
        let text = format!(r#"{{"metadata":{{"name":"a"}},"revision":1,"data":{data}}}"#);
        crate::support::raw(
            plane.0.server(),
            Method::POST,
            REVISIONS,
            "application/json",
            text,
        )
    };
    let (code, _) = post(r#"{"z":1,"a":{"y":2}}"#).await;
    assert_eq!(code, 201);
    let path = format!("{REVISIONS}/a");
    let put = |data: &str, revision: u32| {
        let text = format!(r#"{{"metadata":{{"name":"a"}},"revision":{revision},"data":{data}}}"#);
        crate::support::raw(
            plane.0.server(),
            Method::PUT,
            &path,
            "application/json",
            text,
        )
    };
    assert_eq!(put(r#"{"z":1,"a":{"y":2}}"#, 2).await.0, 200);
    assert_eq!(put(r#"{"a":{"y":2},"z":1}"#, 3).await.0, 422);
    assert_eq!(put(r#"{"z": 1,"a":{"y":2}}"#, 3).await.0, 422);
    let (_, text) =
        crate::support::raw(plane.0.server(), Method::GET, &path, "", String::new()).await;
    assert!(text.contains(r#""data":{"z":1,"a":{"y":2}}"#), "{text}");
    // A strategic patch sorts the data, unlike the stored form.
    assert_eq!(
        plane
            .call(Method::PATCH, &path, &json!({"revision": 4}))
            .await
            .0,
        422
    );
    let merge = "application/merge-patch+json";
    let body = r#"{"revision":4}"#.to_owned();
    let (code, _) = crate::support::raw(plane.0.server(), Method::PATCH, &path, merge, body).await;
    assert_eq!(code, 200);
}

#[tokio::test(start_paused = true)]
async fn unknown_field_policy_can_change_at_run_time() {
    let builder = TestControlPlane::builder().unknown_fields(UnknownFields::Keep);
    let plane = Plane::new(builder.start().await);
    let mut body = set("web");
    body["spec"]["template"]["spec"]["new"] = json!(1);
    plane.create(SETS, &body).await;
    for (policy, name, kept) in [
        (UnknownFields::Prune, "db", false),
        (UnknownFields::Keep, "kv", true),
    ] {
        plane.0.server().set_unknown_fields(policy);
        body["metadata"]["name"] = json!(name);
        let created = plane.create(SETS, &body).await;
        let new = created.pointer("/spec/template/spec/new");
        assert_eq!(new.is_some(), kept, "{policy:?}");
    }
    let stored = plane.get(&format!("{SETS}/web")).await;
    assert_eq!(stored["spec"]["template"]["spec"]["new"], 1);
}

#[tokio::test(start_paused = true)]
async fn unknown_field_policy_is_configurable() {
    for (policy, kept) in [(UnknownFields::Keep, true), (UnknownFields::Prune, false)] {
        let builder = TestControlPlane::builder().unknown_fields(policy);
        let plane = Plane::new(builder.start().await);
        let mut body = pod("p");
        body["spec"]["containers"][0]["new"] = json!({"x": 1});
        plane.create(PODS, &body).await;
        let mut claim = crate::support::claim("data");
        claim["spec"]["new"] = json!("x");
        plane
            .create("/api/v1/namespaces/default/persistentvolumeclaims", &claim)
            .await;
        let mut body = set("web");
        body["spec"]["template"]["spec"]["new"] = json!([1]);
        body["spec"]["volumeClaimTemplates"] = json!([claim]);
        plane.create(SETS, &body).await;
        for (path, pointer) in [
            (format!("{PODS}/p"), "/spec/containers/0/new"),
            (
                "/api/v1/namespaces/default/persistentvolumeclaims/data".to_owned(),
                "/spec/new",
            ),
            (format!("{SETS}/web"), "/spec/template/spec/new"),
            (
                format!("{SETS}/web"),
                "/spec/volumeClaimTemplates/0/spec/new",
            ),
        ] {
            assert_eq!(
                plane.get(&path).await.pointer(pointer).is_some(),
                kept,
                "{pointer}"
            );
        }
        // A later write loses nothing either.
        let patch = json!({"metadata": {"labels": {"a": "b"}}});
        let (_, patched) = plane
            .call(Method::PATCH, &format!("{PODS}/p"), &patch)
            .await;
        assert_eq!(patched["spec"]["containers"][0].get("new").is_some(), kept);
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_may_be_yaml() {
    let plane = plane().await;
    let text = "kind: ConfigMap\nmetadata: {name: yam}\ndata:\n  a: \"1\"\n".to_owned();
    let (code, _) = crate::support::raw(
        plane.0.server(),
        Method::POST,
        MAPS,
        "application/yaml",
        text,
    )
    .await;
    assert_eq!(code, 201);
    assert_eq!(plane.get(&format!("{MAPS}/yam")).await["data"]["a"], "1");
    let (code, _) = crate::support::raw(
        plane.0.server(),
        Method::POST,
        MAPS,
        "text/plain",
        "x".to_owned(),
    )
    .await;
    assert_eq!(code, 415);
}

#[tokio::test(start_paused = true)]
async fn wrong_types_are_rejected_in_server_set_fields() {
    let plane = plane().await;
    for metadata in [
        json!({"name": "p", "generation": 1.5}),
        json!({"name": "p", "uid": 5}),
    ] {
        let pod =
            json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let (code, answer) = plane.call(Method::POST, PODS, &pod).await;
        assert_eq!(code, 400, "{answer}");
    }
}
