//! Admission hooks.

use std::sync::{Arc, Mutex};

use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::admission::{AdmissionRequest, Denial, Operation};
use kube_test_control_plane::reply::ApiError;
use serde_json::{Value, json};

use crate::support::{Plane, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

fn is_new_pod(request: &AdmissionRequest<'_>) -> bool {
    request.operation == Operation::Create
        && request.kind.plural == "pods"
        && request.subresource.is_empty()
}

#[tokio::test(start_paused = true)]
async fn hook_changes_objects_before_validation() {
    let plane = plane().await;
    let admission = plane.0.server().admission();
    admission.add("sidecars", |request: &mut AdmissionRequest<'_>| {
        if is_new_pod(request)
            && let Some(list) = request.object["spec"]["containers"].as_array_mut()
        {
            list.push(json!({"name": "sidecar", "image": "proxy:1"}));
        }
        Ok(())
    });
    let created = plane.create(PODS, &pod("a")).await;
    let sidecar = &created["spec"]["containers"][1];
    assert_eq!(sidecar["name"], "sidecar");
    assert_eq!(sidecar["imagePullPolicy"], "IfNotPresent");

    admission.add("spoiler", |request: &mut AdmissionRequest<'_>| {
        request.object["spec"]["containers"] = json!([]);
        Ok(())
    });
    assert_eq!(plane.call(Method::POST, PODS, &pod("b")).await.0, 422);
    assert!(admission.remove("spoiler"));
    assert!(!admission.remove("spoiler"));
    plane.create(PODS, &pod("b")).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn hook_denies_like_webhooks_and_plug_ins() {
    let plane = plane().await;
    let admission = plane.0.server().admission();
    let left = Mutex::new(2);
    admission.add("quota", move |request: &mut AdmissionRequest<'_>| {
        let mut left = left.lock().unwrap();
        if is_new_pod(request) && !request.dry_run {
            if *left == 0 {
                return Err(Denial::Forbidden("exceeded quota: pods".to_owned()));
            }
            *left -= 1;
        }
        Ok(())
    });
    plane.create(PODS, &pod("a")).await;
    plane.create(PODS, &pod("b")).await;
    let (code, status) = plane.call(Method::POST, PODS, &pod("c")).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "pods \"c\" is forbidden: exceeded quota: pods"
    );
    assert_eq!(status["details"], json!({"name": "c", "kind": "pods"}));

    admission.remove("quota");
    admission.add(
        "policy.example.com",
        |request: &mut AdmissionRequest<'_>| match request.operation {
            Operation::Delete => Err(Denial::Webhook("keep it".to_owned())),
            Operation::Update => Err(Denial::Webhook(String::new())),
            _ => Err(Denial::Error(ApiError::internal("broken"))),
        },
    );
    let path = format!("{PODS}/a");
    let (code, status) = plane.call(Method::DELETE, &path, &Value::Null).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    let denied = "admission webhook \"policy.example.com\" denied the request";
    assert_eq!(status["message"], format!("{denied}: keep it"));
    let labels = json!({"metadata": {"labels": {"x": "y"}}});
    let (_, status) = plane.call(Method::PATCH, &path, &labels).await;
    assert_eq!(status["message"], format!("{denied} without explanation"));
    let (code, _) = plane.call(Method::POST, PODS, &pod("d")).await;
    assert_eq!(code, 500);
    assert_eq!(plane.code(&path).await, 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn hooks_see_every_write_once() {
    let plane = plane().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let admission = plane.0.server().admission();
    admission.add("log", move |request: &mut AdmissionRequest<'_>| {
        let AdmissionRequest {
            operation,
            kind,
            subresource,
            name,
            ..
        } = request;
        let old = request.old_object["metadata"]["name"].as_str().is_some();
        let line = format!("{operation:?} {}/{subresource} {name} {old}", kind.plural);
        note.lock().unwrap().push(line);
        Ok(())
    });
    plane.create(PODS, &pod("a")).await;
    let path = format!("{PODS}/a");
    let body = |what: &str| json!({"metadata": {"name": "a"}, "target": {"name": what}});
    plane
        .call(Method::POST, &format!("{path}/binding"), &body("n"))
        .await;
    let running = json!({"status": {"phase": "Running"}});
    plane
        .call(Method::PATCH, &format!("{path}/status"), &running)
        .await;
    plane
        .call(Method::POST, &format!("{path}/eviction"), &body(""))
        .await;
    let now = json!({"gracePeriodSeconds": 0});
    plane.call(Method::DELETE, &path, &now).await;
    plane
        .create(MAPS, &json!({"metadata": {"name": "m"}}))
        .await;
    plane.call(Method::DELETE, MAPS, &Value::Null).await;
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "Create pods/ a false",
            "Create pods/binding a false",
            "Update pods/status a true",
            "Create pods/eviction a false",
            "Delete pods/ a true",
            "Create configmaps/ m false",
            "Delete configmaps/ m true",
        ]
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verbatim_data_stays_verbatim_unless_a_hook_changes_it() {
    let plane = plane().await;
    let admission = plane.0.server().admission();
    admission.add("labels", |request: &mut AdmissionRequest<'_>| {
        request.object["metadata"]["labels"] = json!({"x": "y"});
        Ok(())
    });
    let text = r#"{"metadata":{"name":"r"},"data":{"b":1,"a":2},"revision":1}"#;
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let server = plane.0.server();
    let send = crate::support::raw(server, Method::POST, path, "application/json", text.into());
    let (code, stored) = send.await;
    assert_eq!(code, 201, "{stored}");
    assert!(stored.contains(r#""data":{"b":1,"a":2}"#), "{stored}");
    assert!(stored.contains(r#""labels":{"x":"y"}"#), "{stored}");
    plane.stop().await;
}
