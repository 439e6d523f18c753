//! Shared helpers.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube_test_control_plane::{ApiServer, TestControlPlane};
use serde_json::{Value, json};

/// A control plane with a plain JSON client.
pub(crate) struct Plane(pub TestControlPlane);

impl Plane {
    pub(crate) fn new(plane: TestControlPlane) -> Self {
        Self(plane)
    }

    /// Starts a control plane with the default settings.
    pub(crate) async fn started() -> Self {
        Self(TestControlPlane::builder().start().await)
    }

    /// Sends a write with a content type.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Answer {
        let headers = [("Content-Type", content_type)];
        exchange(self.0.server(), method, path, &headers, body.to_string()).await
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.0.server().call_json(method, path, "test", body).await
    }

    pub(crate) async fn create(&self, path: &str, body: &Value) -> Value {
        let (code, object) = self.call(Method::POST, path, body).await;
        assert_eq!(code, 201, "{object}");
        object
    }

    /// Returns the error for each rejected field.
    pub(crate) async fn refused(&self, method: Method, path: &str, body: &Value) -> Vec<String> {
        let (code, answer) = self.call(method, path, body).await;
        assert_eq!(code, 422, "{answer}");
        let causes = answer["details"]["causes"].as_array().unwrap().iter();
        let causes = causes.map(|cause| {
            let text = |member: &str| cause[member].as_str().unwrap().to_owned();
            format!("{}: {}", text("field"), text("message"))
        });
        causes.collect()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (code, object) = self.call(Method::GET, path, &Value::Null).await;
        assert_eq!(code, 200, "{object}");
        object
    }

    pub(crate) async fn code(&self, path: &str) -> u16 {
        self.call(Method::GET, path, &Value::Null).await.0
    }

    pub(crate) async fn is_deleting(&self, path: &str) -> bool {
        let (_, object) = self.call(Method::GET, path, &Value::Null).await;
        object["metadata"]["deletionTimestamp"].is_string()
    }

    pub(crate) async fn stop(self) {
        self.0.stop().await;
    }
}

/// Waits until something holds, for at most one hour of paused time.
pub(crate) async fn eventually<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    for _ in 0..36_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the condition did not hold within an hour");
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "img:1"}]},
    })
}

pub(crate) fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    })
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// Applies a strategic merge patch to an object.
pub(crate) async fn call_patch(plane: &Plane, path: &str, patch: &Value) {
    let (code, answer) = plane.call(Method::PATCH, path, patch).await;
    assert_eq!(code, 200, "{answer}");
}

/// Sends text verbatim. Returns the code and the text of the response.
pub(crate) async fn raw(
    server: &ApiServer,
    method: Method,
    path: &str,
    content_type: &str,
    body: String,
) -> (u16, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", content_type)
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let reply = server.serve(request).await.unwrap();
    let code = reply.status().as_u16();
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

/// A response with its body.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes.to_vec()).unwrap()
    }

    /// Returns a header's value; empty if missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

/// Sends a request with these headers.
pub(crate) async fn exchange(
    server: &ApiServer,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into())).unwrap();
    let reply = server.serve(request).await.unwrap();
    let (parts, body) = reply.into_parts();
    Answer {
        code: parts.status.as_u16(),
        headers: parts.headers,
        bytes: body.collect().await.unwrap().to_bytes(),
    }
}

/// Reads with an `Accept` header.
pub(crate) async fn get_as(server: &ApiServer, path: &str, accept: &str) -> Answer {
    exchange(server, Method::GET, path, &[("Accept", accept)], "").await
}

/// Creates the definition of `widgets.example.com`.
pub(crate) async fn define_widgets(plane: &Plane) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "widgets", "kind": "Widget"},
        },
    });
    plane.create(definitions, &definition).await;
}
