//! Embedded control plane for a case.

use std::sync::Arc;

use anyhow::{Context as _, anyhow, ensure};
use bytes::Bytes;
use futures::StreamExt as _;
use http::Request as HttpRequest;
use http_body_util::{BodyExt as _, Full};
use kube_apimachinery::json::RawObject;
use kube_test_control_plane::ServerGates;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::clock::TokioClock;
use serde_json::{Value, json};
use statefulset_client::resource::PODS;
use statefulset_client::rest::{RestClient, WatchEvent, WatchObject, WatchOptions};
use tokio::task::JoinSet;

use super::case::{Case, Recorded, Request};

/// Start time of the control plane's clock.
const BEGIN: &str = "2026-11-22T12:00:00Z";

/// Recorded reason for a closed connection.
const CONNECTION_CLOSED: &str = "ConnectionClosed";

/// A control plane like the recorded one: no actors, unknown fields dropped.
#[derive(Debug)]
pub struct Stage {
    plane: TestControlPlane,
    clock: TokioClock,
}

/// A response in the form of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Status; 0 if the connection was closed without a response.
    pub status: u16,
    /// Reason in a response of kind Status, or the recorded one for a closed connection.
    pub reason: String,
    /// Body of the response.
    pub body: Bytes,
}

impl Stage {
    /// Starts a control plane with the case's namespace.
    ///
    /// # Errors
    ///
    /// It can't be started.
    pub async fn start(case: &Case) -> anyhow::Result<Self> {
        Self::with_namespace(&case.namespace()).await
    }

    /// Starts a control plane with one namespace.
    ///
    /// # Errors
    ///
    /// It can't be started.
    pub async fn with_namespace(namespace: &str) -> anyhow::Result<Self> {
        let clock = TokioClock::starting_at(BEGIN.parse().context("a constant time")?);
        let plane = TestControlPlane::builder()
            .clock(Arc::new(clock.clone()))
            .feature_gates(ServerGates::default().max_unavailable_stateful_set(true))
            .try_start()
            .await?;
        let stage = Self { plane, clock };
        stage.create_namespace(namespace).await?;
        Ok(stage)
    }

    /// The control plane.
    pub fn plane(&self) -> &TestControlPlane {
        &self.plane
    }

    /// Clock of the control plane.
    pub fn clock(&self) -> &TokioClock {
        &self.clock
    }

    /// Creates a namespace.
    ///
    /// # Errors
    ///
    /// The server rejects it.
    pub async fn create_namespace(&self, name: &str) -> anyhow::Result<()> {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let path = "/api/v1/namespaces";
        let body = body.to_string().into();
        let answer = self.ask("POST", path, "application/json", body).await?;
        ensure!(answer.status == 201, "create {name}: {}", answer.status);
        Ok(())
    }

    /// Sends a recorded request, with recorded uids replaced by those of the control plane's
    /// objects.
    ///
    /// # Errors
    ///
    /// The server panicked, or the request is invalid.
    pub async fn send(&self, request: &Request) -> anyhow::Result<Answer> {
        let mut body = request.body.clone();
        for (uid, path) in &request.uids {
            let answer = self.get(path).await?;
            // A deleted object keeps its recorded uid.
            let object: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            if let Some(own) = object.pointer("/metadata/uid").and_then(Value::as_str) {
                body = replace(&body, uid.as_bytes(), own.as_bytes()).into();
            }
        }
        let (method, path) = (&request.method, &request.path);
        self.ask(method, path, &request.content_type, body).await
    }

    /// Stores recorded objects verbatim, so that the server returns their bytes, including uids.
    ///
    /// # Errors
    ///
    /// A body is not an object.
    pub fn store_as_recorded<'a>(
        &self,
        recorded: impl IntoIterator<Item = &'a Recorded>,
    ) -> anyhow::Result<()> {
        for recorded in recorded
            .into_iter()
            .filter(|recorded| recorded.status == 200)
        {
            let Some(body) = &recorded.body else { continue };
            let stored = self.plane.server().store_as_is(body);
            stored.with_context(|| format!("store {}", recorded.path))?;
        }
        Ok(())
    }

    /// Writes an object; a patch is a merge patch.
    ///
    /// # Errors
    ///
    /// The server rejects it, or panicked.
    pub async fn write(&self, method: &str, path: &str, object: &Value) -> anyhow::Result<()> {
        let content_type = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let body = object.to_string().into();
        let answer = self.ask(method, path, content_type, body).await?;
        ensure!(answer.status < 300, "{method} {path}: {}", answer.status);
        Ok(())
    }

    /// Waits until `pods` pods with the name prefix `prefix` have been created in a namespace, or
    /// in all namespaces if it is empty.
    pub async fn pods_created(&self, namespace: &str, prefix: &str, pods: usize) {
        let client = RestClient::new(self.plane.client());
        let options = WatchOptions::default()
            .namespace(namespace)
            .timeout_seconds(600);
        let Ok(mut events) = client.watch(&PODS, &options).await else {
            return std::future::pending().await;
        };
        let mut created = 0;
        while created < pods {
            match events.next().await {
                Some(Ok(WatchEvent::Added(pod))) if has_name(&pod, prefix) => created += 1,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return std::future::pending().await,
            }
        }
    }

    /// Reads an object or a list.
    ///
    /// # Errors
    ///
    /// The server panicked, or the path is invalid.
    pub async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.ask("GET", path, "application/json", Bytes::new())
            .await
    }

    async fn ask(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        let request = HttpRequest::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(Full::new(body))
            .context("make the request")?;
        let server = self.plane.service();
        // A separate task, as behind a port, contains a panic.
        let mut served = JoinSet::new();
        served.spawn(async move {
            let Ok(reply) = server.serve(request).await else {
                return Ok(None);
            };
            let (parts, body) = reply.into_parts();
            let body = body.collect().await;
            let body = body.map_err(|error| anyhow!("read the answer: {error}"))?;
            anyhow::Ok(Some((parts.status.as_u16(), body.to_bytes())))
        });
        let served = served.join_next().await.context("the task has ended")?;
        let served = served.context("the server panics")??;
        let Some((status, body)) = served else {
            return Ok(Answer {
                reason: CONNECTION_CLOSED.to_owned(),
                ..Answer::default()
            });
        };
        Ok(Answer {
            status,
            reason: reason(status, &body),
            body,
        })
    }

    /// Stops the control plane.
    pub async fn end(self) {
        self.plane.stop().await;
    }
}

/// Returns true if an object has a name with this prefix.
fn has_name(object: &WatchObject, prefix: &str) -> bool {
    let name = || {
        let WatchObject::Json(object) = object else {
            return None;
        };
        let object = RawObject::parse(object.text()).ok()?;
        let metadata = RawObject::parse(object.get("metadata")?.get()).ok()?;
        serde_json::from_str(metadata.get("name")?.get()).ok()
    };
    prefix.is_empty() || name().is_some_and(|name: String| name.starts_with(prefix))
}

/// Reason of a failure.
fn reason(status: u16, body: &[u8]) -> String {
    if status < 300 {
        return String::new();
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["reason"].as_str().unwrap_or_default().to_owned()
}

fn replace(bytes: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        if rest.starts_with(what) {
            replaced.extend_from_slice(by);
            rest = &rest[what.len()..];
        } else {
            replaced.push(*first);
            rest = after;
        }
    }
    replaced
}
