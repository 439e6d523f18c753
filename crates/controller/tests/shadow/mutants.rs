//! Leading controllers that are wrong on purpose: each is reported.

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use statefulset_client::rest::RestClient;
use statefulset_controller::metrics::Verdict;
use tower::{BoxError, service_fn};

use crate::stage::{Stage, image, web};

/// A fault of the leading controller.
#[derive(Clone, Copy, Debug)]
enum Mutant {
    NoPodDeletion,
    NoClaim,
    WrongRevisionOfPods,
    WrongNumberOfRevisions,
    NoOwnerOfClaims,
    WrongStatus,
}

impl Mutant {
    /// The changed body of a request; `None` if the request only gets a response.
    fn change(self, method: &Method, path: &str, mut body: Value) -> Option<Value> {
        let is = |wanted: Method, part: &str| *method == wanted && path.contains(part);
        match self {
            Self::NoPodDeletion if is(Method::DELETE, "/pods/") => return None,
            Self::NoClaim if is(Method::POST, "/persistentvolumeclaims") => return None,
            Self::WrongRevisionOfPods if is(Method::POST, "/pods") => {
                body["metadata"]["labels"]["controller-revision-hash"] = json!("web-1");
            }
            Self::WrongNumberOfRevisions if is(Method::POST, "/controllerrevisions") => {
                body["revision"] = json!(7);
            }
            Self::NoOwnerOfClaims if is(Method::PUT, "/persistentvolumeclaims/") => {
                body["metadata"]["ownerReferences"] = json!([]);
            }
            Self::WrongStatus if is(Method::PUT, "/statefulsets/web/status") => {
                body["status"]["availableReplicas"] = json!(0);
            }
            _ => {}
        }
        Some(body)
    }

    fn client(self, client: kube::Client) -> RestClient {
        RestClient::from_service(service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { self.send(client, request).await }
        }))
    }

    async fn send(
        self,
        client: kube::Client,
        request: Request<Body>,
    ) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect_bytes().await?;
        let Ok(body) = serde_json::from_slice::<Value>(&bytes) else {
            let request = Request::from_parts(parts, Body::from(bytes));
            return Ok(client.send(request).await?);
        };
        let Some(changed) = self.change(&parts.method, parts.uri.path(), body.clone()) else {
            let mut stored = body;
            stored["metadata"]["uid"] = json!("not-stored");
            stored["metadata"]["resourceVersion"] = json!("1");
            let response = Response::builder().header("content-type", "application/json");
            return Ok(response.body(Body::from(stored.to_string().into_bytes()))?);
        };
        let body = Body::from(changed.to_string().into_bytes());
        Ok(client.send(Request::from_parts(parts, body)).await?)
    }
}

impl Mutant {
    /// Seconds between two changes: more than a shadow waits for a missing write, unless the fault
    /// makes the controller restart pods all the time.
    fn pause(self) -> u64 {
        match self {
            Self::WrongRevisionOfPods => 8,
            _ => 330,
        }
    }
}

/// Runs a rollout, and scales down. Returns the differences.
async fn differences(mutant: Mutant) -> Vec<Value> {
    let stage = Stage::led_by(|client| mutant.client(client)).await;
    let mut set = web(3);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenScaled": "Delete"});
    stage.create(&set).await;
    stage.pass(mutant.pause()).await;
    stage.change(&image("app:2")).await;
    stage.pass(mutant.pause()).await;
    stage.change(&json!({"replicas": 2})).await;
    stage.pass(mutant.pause()).await;
    let report = stage.report();
    let differences = report["differences"].as_array().unwrap().clone();
    assert_eq!(stage.count(Verdict::Different), differences.len() as u64);
    assert!(!differences.is_empty(), "{mutant:?}: {report:#}");
    stage.assert_no_write();
    differences
}

/// Checks that a difference names this write, with the objects of the decision.
async fn assert_reported(mutant: Mutant, write: &str, is_missing: bool) {
    let found = differences(mutant).await;
    let named = found.iter().find(|difference| {
        let text = difference["write"].as_str().unwrap();
        text.starts_with(write) && difference["isMissing"] == is_missing
    });
    let Some(named) = named else {
        panic!("{mutant:?}: {found:#?}");
    };
    let objects = named["objects"].as_array().unwrap();
    assert_eq!(objects[0]["metadata"]["name"], "web", "{named:#}");
    assert!(objects.len() > 1, "{named:#}");
}

#[tokio::test(start_paused = true)]
async fn missing_deletions_are_reported() {
    assert_reported(Mutant::NoPodDeletion, "delete pods web-2", true).await;
}

#[tokio::test(start_paused = true)]
async fn missing_claims_are_reported() {
    let write = "create persistentvolumeclaims data-web-0";
    assert_reported(Mutant::NoClaim, write, true).await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_another_revision_are_reported() {
    let write = "create pods web-0 (web-1)";
    assert_reported(Mutant::WrongRevisionOfPods, write, false).await;
}

#[tokio::test(start_paused = true)]
async fn revisions_with_another_number_are_reported() {
    let write = "create controllerrevisions web-";
    assert_reported(Mutant::WrongNumberOfRevisions, write, false).await;
}

#[tokio::test(start_paused = true)]
async fn missing_owners_of_claims_are_reported() {
    let write = "change persistentvolumeclaims data-web-2";
    assert_reported(Mutant::NoOwnerOfClaims, write, true).await;
}

#[tokio::test(start_paused = true)]
async fn wrong_status_is_reported() {
    assert_reported(Mutant::WrongStatus, "change statefulsets/status web", true).await;
}
