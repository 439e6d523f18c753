//! The deletion of the set, the one step that could cost its pods.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request};
use kube::client::Body;
use tokio::time::Instant;

use super::{CHANGE, RECORDS, owning, settled};
use crate::stage::{SET, Stage};

/// A client that makes a change of the set right before it deletes the set, if there is one. Returns it
/// with the times of the deletions.
fn deleting_client(
    stage: &Stage,
    change: Option<&'static str>,
) -> (kube::Client, Arc<Mutex<Vec<Instant>>>) {
    let times = Arc::new(Mutex::new(Vec::new()));
    let (seen, server) = (Arc::clone(&times), stage.plane.client());
    let is_recorded = Arc::new(Mutex::new(false));
    let serve = move |request: Request<Body>| {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut is_recorded = is_recorded.lock().expect("no test panics here");
        *is_recorded |= method == Method::POST && path == RECORDS;
        // Before the record is stored, the deletion is tried in a dry run.
        let deletes = *is_recorded && method == Method::DELETE && path == SET;
        if deletes {
            let mut seen = seen.lock().expect("no test panics here");
            seen.push(Instant::now());
        }
        let server = server.clone();
        async move {
            if let Some(change) = change.filter(|_| deletes) {
                let patch = Request::patch(SET)
                    .header("content-type", "application/merge-patch+json")
                    .body(Body::from(change.as_bytes().to_vec()))
                    .expect("the request is valid");
                server.send(patch).await?;
            }
            server.send(request).await
        }
    };
    let client = kube::Client::new(tower::service_fn(serve), "default");
    (client, times)
}

#[tokio::test(start_paused = true)]
async fn set_that_changes_right_before_its_deletion_stays() {
    let stage = settled(&owning(2)).await;
    let before = stage.get(SET).await;
    let change = r#"{"metadata": {"annotations": {"note": "mine"}}}"#;
    let (client, deletions) = deleting_client(&stage, Some(change));
    let text = stage.sts_as(client, CHANGE).await;
    assert!(
        text.contains("error: StatefulSet web was changed after the plan"),
        "{text}"
    );
    let tried = deletions.lock().expect("no test panics here").len();
    assert_eq!(tried, 1, "{text}");
    let after = stage.get(SET).await;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(after["metadata"]["deletionTimestamp"].is_null(), "{after}");
}

#[tokio::test(start_paused = true)]
async fn set_is_deleted_after_its_owners_have_rested() {
    let stage = settled(&owning(2)).await;
    let begin = Instant::now();
    let (client, deletions) = deleting_client(&stage, None);
    let text = stage.sts_as(client, CHANGE).await;
    assert!(text.ends_with("StatefulSet web is recreated\n"), "{text}");
    let deletions = deletions.lock().expect("no test panics here");
    let waited: Vec<Duration> = deletions.iter().map(|at| *at - begin).collect();
    assert!(
        matches!(&waited[..], [once] if *once >= Duration::from_secs(5)),
        "{waited:?}"
    );
}
