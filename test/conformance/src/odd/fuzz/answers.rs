//! Random odd responses of an API server: objects, lists, watch events, errors, leases.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use kube_apimachinery::json::Document;
use kube_test_control_plane::auth::Identity;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use statefulset_client::leaderelection::LeaseName;
use statefulset_controller::{LeaderElection, StatefulSetController};
use tokio::task::JoinSet;
use tower::BoxError;

use super::mutate::mutated;
use super::objects::NAMESPACE;
use super::ordinary::Ordinary;
use super::tree::Tree;
use crate::odd::program::Program;
use crate::odd::stage::Stage;

/// Time that the controller runs with odd responses.
const LASTS: Duration = Duration::from_secs(20);
/// Share of the responses that are odd.
const ODD: f64 = 0.2;

type SharedRng = Arc<Mutex<StdRng>>;

/// Runs the controller, its election included, on odd responses, then without them.
///
/// # Errors
///
/// The program ends without a reason, or doesn't serve an ordinary set after a restart.
pub(super) async fn play(seed: u64) -> anyhow::Result<()> {
    let stage = Stage::with_namespace(NAMESPACE).await?;
    let set = Ordinary::new(&stage, NAMESPACE, "calm");
    let rng = Arc::new(Mutex::new(StdRng::seed_from_u64(seed)));
    let mut program = JoinSet::new();
    program.spawn(lead_again_and_again(client(&stage, &rng), seed));
    // Odd responses may delay or change this set.
    let _ = set.create(1).await;
    tokio::time::sleep(LASTS).await;
    ensure!(program.try_join_next().is_none(), "the program has ended");
    program.shutdown().await;

    let calm = Program::start(&stage);
    set.scale(2).await.context("after the odd answers")?;
    calm.stop().await?;
    stage.end().await;
    Ok(())
}

/// Runs a controller; when it loses its lease, the next one.
async fn lead_again_and_again(client: kube::Client, seed: u64) {
    for round in 0_u64.. {
        let lease = LeaseName::new(NAMESPACE, "lease");
        let controller = StatefulSetController::builder_with_kube_client(client.clone())
            .leader_election(LeaderElection::new(lease, format!("instance-{round}")))
            .seed(seed.wrapping_add(round))
            .build();
        match controller {
            Ok(controller) => drop(controller.run(std::future::pending()).await),
            Err(error) => unreachable!("the settings are constant: {error}"),
        }
    }
}

/// Returns a client that gets some responses in an odd form.
fn client(stage: &Stage, rng: &SharedRng) -> kube::Client {
    let (client, rng) = (stage.plane().client_as(Identity::admin()), Arc::clone(rng));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, rng) = (client.clone(), Arc::clone(&rng));
        async move {
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=");
            let (parts, body) = client.send(request).await?.into_parts();
            let body = if is_watch {
                let frames = body.into_data_stream().map(move |part| {
                    let part = part.map_err(std::io::Error::other)?;
                    Ok::<_, std::io::Error>(Frame::data(mangled_lines(&part, &rng)))
                });
                StreamBody::new(frames).boxed_unsync()
            } else {
                let whole = body.collect().await?.to_bytes();
                let whole = Full::new(Bytes::from(mangled(&whole, &rng)));
                whole.map_err(|never| match never {}).boxed_unsync()
            };
            Ok::<_, BoxError>(Response::from_parts(parts, body))
        }
    });
    kube::Client::new(service, "default")
}

/// Makes some lines of a watch odd.
fn mangled_lines(part: &[u8], rng: &SharedRng) -> Bytes {
    let mut all = Vec::new();
    for line in part.split_inclusive(|byte| *byte == b'\n') {
        let (text, end) = match line.split_last() {
            Some((b'\n', text)) => (text, &b"\n"[..]),
            _ => (line, &b""[..]),
        };
        all.extend(mangled(text, rng));
        all.extend_from_slice(end);
    }
    all.into()
}

/// Returns the JSON text, or an odd form of it.
fn mangled(text: &[u8], rng: &SharedRng) -> Vec<u8> {
    let mut rng = rng.lock().unwrap_or_else(PoisonError::into_inner);
    let value: Option<Value> = if rng.random_bool(ODD) {
        serde_json::from_str(Document::new(text.to_vec()).text()).ok()
    } else {
        None
    };
    match value {
        Some(value) => mutated(&Tree::from(value), &mut rng),
        None => text.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn election_survives_odd_responses() {
        let stage = Stage::with_namespace(NAMESPACE).await.unwrap();
        let rng = Arc::new(Mutex::new(StdRng::seed_from_u64(1)));
        let path = format!("/api/v1/namespaces/{NAMESPACE}");
        let ordinary = stage.get(&path).await.unwrap().body;
        let client = client(&stage, &rng);
        let mut odd = 0;
        for _ in 0..100 {
            let request = Request::get(&path).body(Body::empty()).unwrap();
            let answer = client.send(request).await.unwrap();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            odd += usize::from(body != ordinary);
        }
        assert!((10..40).contains(&odd), "{odd}");

        let mut program = JoinSet::new();
        program.spawn(lead_again_and_again(client, 1));
        tokio::time::sleep(LASTS).await;
        assert!(program.try_join_next().is_none(), "the program has ended");
        program.shutdown().await;
        let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/lease");
        let lease = stage.get(&lease).await.unwrap();
        assert_eq!(lease.status, 200);
        stage.end().await;
    }
}
