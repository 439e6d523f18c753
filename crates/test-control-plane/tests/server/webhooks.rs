//! Admission webhooks in this process, in paused time.

mod axum;
mod conversion;
mod faults;
mod https;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::service_fn;

use crate::support::{Plane, call_patch, exchange, pod};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// The reviews that a webhook has received.
#[derive(Clone, Default)]
struct Reviews(Arc<Mutex<Vec<Value>>>);

impl Reviews {
    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

/// Serves a webhook as `default/hooks`, below a path. It responds to requests as the function says.
fn serve(
    plane: &Plane,
    name: &str,
    respond: impl Fn(&Value) -> Value + Clone + Send + Sync + 'static,
) -> Reviews {
    let reviews = Reviews::default();
    let received = reviews.clone();
    let handler = service_fn(move |request: Request<Full<Bytes>>| {
        let (respond, received) = (respond.clone(), received.clone());
        async move {
            let review = body(request).await;
            let response = respond(&review["request"]);
            received.0.lock().unwrap().push(review.clone());
            Ok::<_, http::Error>(answer(&review, response))
        }
    });
    plane
        .0
        .server()
        .webhook_services()
        .serve("default", name, handler);
    reviews
}

async fn body(request: Request<Full<Bytes>>) -> Value {
    let bytes = request.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

/// Returns the HTTP response with the response to a review.
fn answer(review: &Value, mut response: Value) -> Response<Full<Bytes>> {
    response["uid"] = review["request"]["uid"].clone();
    let review = json!({
        "apiVersion": review["apiVersion"], "kind": review["kind"], "response": response,
    });
    Response::new(review.to_string().into())
}

/// Returns a response with a patch.
fn patched(patch: &Value) -> Value {
    json!({
        "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string()),
    })
}

/// Returns a webhook of the service `default/NAME` for config maps and pods.
fn webhook(name: &str, more: &Value) -> Value {
    let mut webhook = json!({
        "name": format!("{name}.example.com"),
        "clientConfig": {"service": {"namespace": "default", "name": name}},
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["configmaps", "pods"],
        }],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    for (member, value) in more.as_object().unwrap() {
        webhook[member] = value.clone();
    }
    webhook
}

/// Stores a configuration with this name.
async fn configure(plane: &Plane, kind: &str, name: &str, webhooks: &[Value]) {
    let path = format!("{ADMISSION}/{kind}webhookconfigurations");
    let body = json!({"metadata": {"name": name}, "webhooks": webhooks});
    plane.create(&path, &body).await;
}

fn map(name: &str, data: &Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

/// Returns the message of a rejected request with this code.
async fn rejected(plane: &Plane, method: Method, path: &str, body: &Value, code: u16) -> String {
    let (found, answer) = plane.call(method, path, body).await;
    assert_eq!(found, code, "{answer}");
    answer["message"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn validating_webhook_denies_writes_and_deletions() {
    let plane = plane().await;
    let reviews = serve(&plane, "hooks", |request| {
        let is_denied = request["operation"] != "CREATE";
        json!({"allowed": !is_denied, "warnings": ["seen"], "status": {"message": "keep it", "code": 403}})
    });
    configure(&plane, "validating", "c", &[webhook("hooks", &json!({}))]).await;
    let body = serde_json::to_vec(&map("x", &json!({}))).unwrap();
    let headers = [("Content-Type", "application/json")];
    let created = exchange(plane.0.server(), Method::POST, MAPS, &headers, body).await;
    assert_eq!(
        (created.code, created.header("warning")),
        (201, "299 - \"seen\"")
    );
    let path = format!("{MAPS}/x");
    let expected = "admission webhook \"hooks.example.com\" denied the request: keep it";
    let patch = map("x", &json!({"a": "b"}));
    for (method, body) in [(Method::PATCH, &patch), (Method::DELETE, &Value::Null)] {
        assert_eq!(rejected(&plane, method, &path, body, 403).await, expected);
    }
    assert!(plane.get(&path).await["data"].is_null());
    let operations: Vec<Value> = reviews
        .take()
        .iter()
        .map(|review| review["request"]["operation"].clone())
        .collect();
    assert_eq!(operations, ["CREATE", "UPDATE", "DELETE"]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn hanging_webhook_fails_after_its_timeout() {
    let plane = plane().await;
    let hang = service_fn(|_: Request<Full<Bytes>>| {
        std::future::pending::<Result<Response<Full<Bytes>>, http::Error>>()
    });
    let services = plane.0.server().webhook_services();
    services.serve("default", "hooks", hang);
    let limited = json!({"timeoutSeconds": 7});
    configure(&plane, "validating", "c", &[webhook("hooks", &limited)]).await;
    let before = Instant::now();
    assert_eq!(
        rejected(&plane, Method::POST, MAPS, &map("x", &json!({})), 500).await,
        "Internal error occurred: failed calling webhook \"hooks.example.com\": failed to call \
         webhook: Post \"https://hooks.default.svc:443/?timeout=7s\": context deadline exceeded"
    );
    assert_eq!(before.elapsed().as_secs(), 7);

    let path = format!("{ADMISSION}/validatingwebhookconfigurations/c");
    let ignored = json!([{"op": "add", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]);
    let headers = [("Content-Type", "application/json-patch+json")];
    let patch = serde_json::to_vec(&ignored).unwrap();
    let changed = exchange(plane.0.server(), Method::PATCH, &path, &headers, patch).await;
    assert_eq!(changed.code, 200);
    let before = Instant::now();
    plane.create(MAPS, &map("x", &json!({}))).await;
    assert_eq!(before.elapsed().as_secs(), 7);
    let entries = plane.0.server().audit().entries();
    let annotations = &entries.last().unwrap().annotations;
    let key = "failed-open.validating.webhook.admission.k8s.io/round_0_index_0";
    assert_eq!(annotations[key], "hooks.example.com");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changed_objects_go_through_earlier_webhooks_again() {
    let plane = plane().await;
    let first = serve(&plane, "first", |_| {
        patched(&json!([{"op": "add", "path": "/data/first", "value": "1"}]))
    });
    serve(&plane, "second", |_| {
        patched(&json!([{"op": "add", "path": "/data/second", "value": "2"}]))
    });
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let hooks = [webhook("first", &again), webhook("second", &json!({}))];
    configure(&plane, "mutating", "c", &hooks).await;
    let created = plane.create(MAPS, &map("x", &json!({"a": "b"}))).await;
    let all = json!({"a": "b", "first": "1", "second": "2"});
    assert_eq!(created["data"], all);
    let data: Vec<Value> = first
        .take()
        .iter()
        .map(|review| review["request"]["object"]["data"].clone())
        .collect();
    assert_eq!(data, [json!({"a": "b"}), all]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn patched_objects_get_defaults_and_validation() {
    let plane = plane().await;
    serve(&plane, "hooks", |request| {
        let container = json!({"name": request["name"], "image": "proxy:1"});
        patched(&json!([{"op": "add", "path": "/spec/containers/-", "value": container}]))
    });
    configure(&plane, "mutating", "c", &[webhook("hooks", &json!({}))]).await;
    let created = plane.create(PODS, &pod("a")).await;
    let sidecar = &created["spec"]["containers"][1];
    assert_eq!(
        (&sidecar["name"], &sidecar["imagePullPolicy"]),
        (&json!("a"), &json!("IfNotPresent"))
    );
    let errors = plane.refused(Method::POST, PODS, &pod("c")).await;
    assert_eq!(errors, ["spec.containers[1].name: Duplicate value: \"c\""]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn webhooks_with_side_effects_see_no_dry_runs() {
    let plane = plane().await;
    let reviews = serve(&plane, "hooks", |_| json!({"allowed": true}));
    let some = json!({"sideEffects": "None", "name": "a.example.com"});
    configure(&plane, "validating", "c", &[webhook("hooks", &some)]).await;
    let path = format!("{MAPS}?dryRun=All");
    plane.create(&path, &map("x", &json!({}))).await;
    assert_eq!(reviews.take()[0]["request"]["dryRun"], true);
    // Only older servers stored such webhooks.
    let mut stored = plane
        .get(&format!("{ADMISSION}/validatingwebhookconfigurations/c"))
        .await;
    stored["webhooks"][0]["sideEffects"] = json!("Some");
    plane.0.store_raw(&stored).unwrap();
    assert_eq!(
        rejected(&plane, Method::POST, &path, &map("x", &json!({})), 400).await,
        "admission webhook \"a.example.com\" does not support dry run"
    );
    assert_eq!(reviews.take().len(), 0);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn webhook_of_an_unknown_service_fails() {
    let plane = plane().await;
    let ignored = json!({"failurePolicy": "Ignore"});
    configure(&plane, "validating", "c", &[webhook("hooks", &json!({}))]).await;
    configure(&plane, "mutating", "c", &[webhook("others", &ignored)]).await;
    let call = async || rejected(&plane, Method::POST, MAPS, &map("x", &json!({})), 500).await;
    let start = "Internal error occurred: failed calling webhook \"hooks.example.com\": failed to \
                 call webhook: Post \"https://hooks.default.svc:443/?timeout=10s\": ";
    assert_eq!(call().await, format!("{start}service \"hooks\" not found"));
    let service = json!({"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}]}});
    let services = "/api/v1/namespaces/default/services";
    let service = plane.create(services, &service).await;
    let address = service["spec"]["clusterIP"].as_str().unwrap();
    assert_eq!(
        call().await,
        format!("{start}dial tcp {address}:443: connect: connection refused")
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn slow_webhook_does_not_hide_other_writes() {
    let plane = plane().await;
    plane.create(MAPS, &map("x", &json!({"a": "1"}))).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let slow = service_fn(move |request: Request<Full<Bytes>>| {
        let count = counted.fetch_add(1, Ordering::Relaxed);
        async move {
            if count == 0 {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            let review = body(request).await;
            Ok::<_, http::Error>(answer(&review, json!({"allowed": true})))
        }
    });
    let services = plane.0.server().webhook_services();
    services.serve("default", "hooks", slow);
    configure(&plane, "validating", "c", &[webhook("hooks", &json!({}))]).await;
    let path = format!("{MAPS}/x");
    let patch = |data: Value| json!({"data": data});
    let (slow, fast) = (patch(json!({"slow": "1"})), patch(json!({"fast": "1"})));
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        call_patch(&plane, &path, &fast).await;
    };
    tokio::join!(call_patch(&plane, &path, &slow), late);
    let found = plane.get(&path).await;
    assert_eq!(found["data"], json!({"a": "1", "slow": "1", "fast": "1"}));
    // The slow write is built and reviewed again on top of the fast one.
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn webhook_may_call_the_server() {
    let plane = plane().await;
    let server = plane.0.server().clone();
    let handler = service_fn(move |request: Request<Full<Bytes>>| {
        let server = server.clone();
        async move {
            let review = body(request).await;
            let path = format!("{MAPS}/limits");
            let (_, limits) = server
                .call_json(Method::GET, &path, "hook", &Value::Null)
                .await;
            let is_allowed = limits["data"]["open"] == "true";
            Ok::<_, http::Error>(answer(&review, json!({"allowed": is_allowed})))
        }
    });
    let services = plane.0.server().webhook_services();
    services.serve("default", "hooks", handler);
    plane
        .create(MAPS, &map("limits", &json!({"open": "true"})))
        .await;
    configure(&plane, "validating", "c", &[webhook("hooks", &json!({}))]).await;
    plane.create(PODS, &pod("a")).await;
    call_patch(
        &plane,
        &format!("{MAPS}/limits"),
        &json!({"data": {"open": "false"}}),
    )
    .await;
    assert_eq!(
        rejected(&plane, Method::POST, PODS, &pod("b"), 400).await,
        "admission webhook \"hooks.example.com\" denied the request without explanation"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn reviews_and_changes_are_in_the_audit_log() {
    let plane = plane().await;
    serve(&plane, "hooks", |_| {
        let mut response = patched(&json!([{"op": "add", "path": "/data", "value": {"a": "b"}}]));
        response["auditAnnotations"] = json!({"why": "because"});
        response
    });
    configure(&plane, "mutating", "c", &[webhook("hooks", &json!({}))]).await;
    plane
        .create(MAPS, &json!({"metadata": {"name": "x"}}))
        .await;
    let entries = plane.0.server().audit().entries();
    let annotations = &entries.last().unwrap().annotations;
    assert_eq!(annotations["hooks.example.com/why"], "because");
    assert_eq!(
        annotations["mutation.webhook.admission.k8s.io/round_0_index_0"],
        r#"{"configuration":"c","webhook":"hooks.example.com","mutated":true}"#
    );
    plane.stop().await;
}

/// Upstream compares the decoded objects, before it sets defaults. The first patch changes the times of
/// the managers, which lose their fractions.
#[tokio::test(start_paused = true)]
async fn spelling_is_no_change_but_a_removed_default_is_one() {
    let plane = plane().await;
    let memory = "/spec/containers/0/resources/requests/memory";
    serve(&plane, "hooks", move |request| {
        patched(&match request["name"].as_str() {
            Some("a") => json!([{"op": "replace", "path": memory, "value": "1073741824"}]),
            _ => json!([{"op": "remove", "path": "/spec/dnsPolicy"}]),
        })
    });
    serve(&plane, "first", |_| {
        patched(&json!([{"op": "add", "path": "/metadata/labels", "value": {}}]))
    });
    let hooks = ["first", "hooks"].map(|name| webhook(name, &json!({})));
    configure(&plane, "mutating", "c", &hooks).await;
    for (name, is_changed) in [("a", false), ("b", true)] {
        let mut pod = pod(name);
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": "1Gi"}});
        let created = plane.create(PODS, &pod).await;
        assert_eq!(created["spec"]["dnsPolicy"], "ClusterFirst");
        let entries = plane.0.server().audit().entries();
        let annotations = &entries.last().unwrap().annotations;
        for (index, is_changed) in [(0, true), (1, is_changed)] {
            let key = format!("mutation.webhook.admission.k8s.io/round_0_index_{index}");
            let mutated = format!("\"mutated\":{is_changed}}}");
            assert!(annotations[&key].ends_with(&mutated), "{annotations:?}");
        }
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn removed_service_and_configuration_end_the_calls() {
    let plane = plane().await;
    let reviews = serve(&plane, "hooks", |_| json!({"allowed": true}));
    configure(&plane, "validating", "c", &[webhook("hooks", &json!({}))]).await;
    plane.create(MAPS, &map("x", &json!({}))).await;
    assert_eq!(reviews.take().len(), 1);
    let services = plane.0.server().webhook_services();
    assert!(services.remove("default", "hooks"));
    assert!(!services.remove("default", "hooks"));
    rejected(&plane, Method::POST, MAPS, &map("y", &json!({})), 500).await;
    let path = format!("{ADMISSION}/validatingwebhookconfigurations/c");
    assert_eq!(plane.call(Method::DELETE, &path, &Value::Null).await.0, 200);
    plane.create(MAPS, &map("y", &json!({}))).await;
    plane.stop().await;
}
