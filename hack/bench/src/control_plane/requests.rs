//! Requests to an in-process control plane.

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kube_test_control_plane::ApiServer;
use kube_test_control_plane::reply::Reply;
use serde_json::{Value, json};

use crate::cluster::Recorded;

/// Number of created config maps.
pub(super) const CREATED: usize = 10_000;
/// Number of repetitions; the fastest one counts.
pub(super) const CREATES: usize = 3;
/// Path of the config maps.
pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Path of the pods.
pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
/// Number of requests in flight.
const IN_FLIGHT: usize = 16;

/// Creates config maps of 1 kB, named after `prefix`.
pub(super) async fn create_maps(
    server: &ApiServer,
    prefix: &str,
    count: usize,
) -> anyhow::Result<()> {
    let bodies: Vec<Bytes> = map_bodies(prefix, count).collect();
    create(server, MAPS, bodies.into_iter()).await
}

/// Config maps of 1 kB, named after `prefix`.
pub(super) fn map_bodies(prefix: &str, count: usize) -> impl Iterator<Item = Bytes> {
    let data = "x".repeat(900);
    (0..count).map(move |number| {
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": format!("{prefix}-{number}"), "labels": {"app": "bench"}},
            "data": {"text": data},
        });
        Bytes::from(map.to_string())
    })
}

/// Pods copied from a recorded one.
pub(super) fn pod_bodies(count: usize) -> anyhow::Result<Vec<String>> {
    let recorded = Recorded::read()?;
    (0..count).map(|number| pod(&recorded, number)).collect()
}

/// Creates pods. The caller keeps their texts, as for requests over a wire.
pub(super) async fn create_pods(server: &ApiServer, bodies: &[String]) -> anyhow::Result<()> {
    let bodies = bodies
        .iter()
        .map(|body| Bytes::copy_from_slice(body.as_bytes()));
    create(server, PODS, bodies).await
}

/// The pod without the server's fields.
fn pod(recorded: &Recorded, number: usize) -> anyhow::Result<String> {
    let mut pod: Value = serde_json::from_str(&recorded.numbered_pod_json(number))?;
    let metadata = pod.get_mut("metadata").and_then(Value::as_object_mut);
    let metadata = metadata.context("the recorded pod has no metadata")?;
    for member in ["managedFields", "namespace", "resourceVersion", "uid"] {
        metadata.remove(member);
    }
    Ok(pod.to_string())
}

/// Creates objects.
pub(super) async fn create(
    server: &ApiServer,
    path: &str,
    bodies: impl Iterator<Item = Bytes>,
) -> anyhow::Result<()> {
    stream::iter(bodies)
        .map(|body| async move {
            let reply = send(server, Method::POST, path, body).await?;
            let code = reply.status().as_u16();
            let bytes = read(reply).await?;
            ensure!(code == 201, "{code}: {}", String::from_utf8_lossy(&bytes));
            Ok(())
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect()
        .await
}

/// Reads a path, or opens a watch.
pub(super) async fn open(server: &ApiServer, path: &str) -> anyhow::Result<Reply> {
    let reply = send(server, Method::GET, path, Bytes::new()).await?;
    ensure!(reply.status().is_success(), "{path}: {}", reply.status());
    Ok(reply)
}

/// Reads a path.
pub(super) async fn get(server: &ApiServer, path: &str) -> anyhow::Result<Bytes> {
    read(open(server, path).await?).await
}

/// Reads a response to its end; returns its body.
pub(super) async fn count_bytes(reply: Reply) -> anyhow::Result<usize> {
    let mut body = reply.into_body();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(anyhow::Error::from_boxed)?;
        size += frame.data_ref().map_or(0, Bytes::len);
    }
    Ok(size)
}

async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    body: Bytes,
) -> anyhow::Result<Reply> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", "application/json")
        .header("User-Agent", "bench")
        .body(Full::new(body))?;
    Ok(server.serve(request).await?)
}

async fn read(reply: Reply) -> anyhow::Result<Bytes> {
    let body = reply.into_body().collect().await;
    Ok(body.map_err(anyhow::Error::from_boxed)?.to_bytes())
}
