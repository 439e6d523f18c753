//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::future::Future;
use std::time::Duration;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

/// A control plane that is asked with plain JSON.
pub struct Plane(pub TestControlPlane);

impl Plane {
    pub fn new(plane: TestControlPlane) -> Self {
        Self(plane)
    }

    pub async fn call(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.0.server().call_json(method, path, "test", body).await
    }

    pub async fn create(&self, path: &str, body: &Value) -> Value {
        let (code, object) = self.call(Method::POST, path, body).await;
        assert_eq!(code, 201, "{object}");
        object
    }

    pub async fn get(&self, path: &str) -> Value {
        let (code, object) = self.call(Method::GET, path, &Value::Null).await;
        assert_eq!(code, 200, "{object}");
        object
    }

    pub async fn code(&self, path: &str) -> u16 {
        self.call(Method::GET, path, &Value::Null).await.0
    }

    pub async fn is_deleting(&self, path: &str) -> bool {
        let (_, object) = self.call(Method::GET, path, &Value::Null).await;
        object["metadata"]["deletionTimestamp"].is_string()
    }

    pub async fn stop(self) {
        self.0.stop().await;
    }
}

/// Waits until something holds, for at most an hour of paused time.
pub async fn eventually<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    for _ in 0..36_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it did not happen within an hour");
}

pub fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "img:1"}]},
    })
}

pub fn claim(name: &str) -> Value {
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

pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Ready" && c["status"] == "True")
}
