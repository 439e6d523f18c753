//! Pod behaviour on nodes.

mod changing;
mod ending;
mod failing;
mod orders;
mod references;
mod starting;

use std::future::Future;
use std::time::Duration;

use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{Delay, KubeletConfig, PodBehaviour};
use serde_json::Value;
use tokio::time::Instant;

use crate::support::{Plane, eventually};

const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "/api/v1/namespaces/default/pods/p";

fn seconds(seconds: u64) -> Delay {
    Duration::from_secs(seconds).into()
}

async fn plane_with(config: KubeletConfig) -> Plane {
    Plane::new(TestControlPlane::builder().kubelet(config).start().await)
}

async fn plane(behaviour: PodBehaviour) -> Plane {
    plane_with(KubeletConfig::new(behaviour)).await
}

/// Starts a control plane with one pod of this behaviour; its node has it from now on.
async fn started(behaviour: PodBehaviour) -> (Plane, Instant) {
    let plane = plane(behaviour).await;
    plane.create(PODS, &crate::support::pod("p")).await;
    let now = Instant::now();
    (plane, now)
}

/// Returns the seconds until something holds.
async fn after<F: Future<Output = bool>>(start: Instant, holds: impl Fn() -> F) -> u64 {
    eventually(holds).await;
    start.elapsed().as_secs()
}

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

fn waiting(pod: &Value) -> &str {
    let reason = &container(pod)["state"]["waiting"]["reason"];
    reason.as_str().unwrap_or_default()
}

fn condition<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|c| c["type"] == name).unwrap()
}

async fn status_column(plane: &Plane) -> String {
    let server = plane.0.server();
    let request = http::Request::builder()
        .uri(POD)
        .header("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
        .body(http_body_util::Full::<bytes::Bytes>::default())
        .unwrap();
    let reply = server.serve(request).await.unwrap();
    let body = http_body_util::BodyExt::collect(reply.into_body()).await;
    let table: Value = serde_json::from_slice(&body.unwrap().to_bytes()).unwrap();
    let cells = &table["rows"][0]["cells"];
    format!("{} {} {}", cells[1], cells[2], cells[3]).replace('"', "")
}
