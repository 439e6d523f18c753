//! One step of the shipped controller on a snapshot, without a cluster: every request is answered
//! inside the process, and writes are only recorded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use http::{Method, Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};
use statefulset_client::backoff::SeededJitter;
use statefulset_client::cache::indexer::{CachedObject, Indexer};
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::NoopRecorder;
use statefulset_client::rest::RestClient;
use statefulset_controller::controller_util::consistency::Caches;
use statefulset_controller::controller_util::stateful_set::StatefulSet;
use statefulset_controller::{SetSyncer, SyncerParts, Waiting};
use tower::BoxError;
use tower::service_fn;

/// The objects of one set, each as the server sent it.
pub(crate) struct Objects<'a> {
    /// The set.
    pub(crate) set: &'a str,
    /// Its pods, and those whose names it wants.
    pub(crate) pods: Vec<&'a str>,
    /// Its claims.
    pub(crate) claims: Vec<&'a str>,
    /// Its revisions.
    pub(crate) revisions: Vec<&'a str>,
}

/// The controller's next step.
pub(crate) struct Decision {
    /// The writes that it would send, in order; status writes are left out.
    pub(crate) writes: Vec<Write>,
    /// The reason to wait after them.
    pub(crate) waiting: Option<Waiting>,
    /// Its error.
    pub(crate) error: Option<String>,
}

/// A write that was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    /// `create`, `update`, `patch` or `delete`.
    pub(crate) verb: &'static str,
    /// Resource, such as `pods`.
    pub(crate) resource: String,
    /// Name of the object.
    pub(crate) name: String,
}

/// A time that stands still.
struct Moment(Timestamp);

impl Clock for Moment {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// Answers requests from the snapshot.
#[derive(Default)]
struct Answers {
    objects: BTreeMap<String, String>,
    writes: Mutex<Vec<Write>>,
}

/// Syncs the set once.
///
/// # Errors
///
/// An object can't be decoded, which also stops the controller's sync of the set.
pub(crate) async fn decide(objects: &Objects<'_>, now: Timestamp) -> anyhow::Result<Decision> {
    let caches = Caches::default();
    let mut answers = Answers::default();
    let set = StatefulSet::decode(objects.set).context("decode the set")?;
    let key = set.key();
    caches.sets.add(set);
    fill(&caches.pods, &objects.pods).context("decode a pod of the set")?;
    fill(&caches.claims, &objects.claims).context("decode a claim of the set")?;
    fill(&caches.revisions, &objects.revisions).context("decode a revision of the set")?;
    let namespace = key.namespace();
    answers.add(
        &format!("/apis/apps/v1/namespaces/{namespace}/statefulsets"),
        &[objects.set],
    );
    answers.add(
        &format!("/api/v1/namespaces/{namespace}/pods"),
        &objects.pods,
    );
    let claims = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
    answers.add(&claims, &objects.claims);
    let revisions = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions");
    answers.add(&revisions, &objects.revisions);
    let answers = Arc::new(answers);
    let service = {
        let answers = Arc::clone(&answers);
        service_fn(move |request| {
            let answers = Arc::clone(&answers);
            async move { answers.answer(request).await }
        })
    };
    let parts = SyncerParts::new(
        caches,
        &RestClient::from_service(service),
        Arc::new(NoopRecorder),
        Arc::new(Moment(now)),
        Arc::new(SeededJitter::new(0)),
        FeatureGates::default(),
    );
    let (waiting, error) = match SetSyncer::new(parts).sync_guarded(&key).await {
        Ok(outcome) => (outcome.waiting, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let writes = answers
        .writes
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    Ok(Decision {
        writes: writes.clone(),
        waiting,
        error,
    })
}

fn fill<K: CachedObject>(cache: &Indexer<K>, texts: &[&str]) -> Result<(), serde_json::Error> {
    for text in texts {
        cache.add(K::decode(text)?);
    }
    Ok(())
}

impl Answers {
    fn add(&mut self, collection: &str, texts: &[&str]) {
        for text in texts {
            let object: Value = serde_json::from_str(text).unwrap_or_default();
            let name = object.pointer("/metadata/name").and_then(Value::as_str);
            let path = format!("{collection}/{}", name.unwrap_or_default());
            self.objects.insert(path, (*text).to_owned());
        }
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        let body = body.collect_bytes().await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let stored = self.objects.get(&path);
        let (code, text) = match (parts.method, stored) {
            (Method::GET, Some(stored)) => (200, stored.clone()),
            (Method::POST, _) => {
                let name = body.pointer("/metadata/name").and_then(Value::as_str);
                self.record("create", &format!("{path}/{}", name.unwrap_or_default()));
                (201, as_stored(body))
            }
            (Method::PUT, _) => {
                self.record("update", &path);
                (200, as_stored(body))
            }
            (Method::PATCH, Some(stored)) => {
                self.record("patch", &path);
                (200, stored.clone())
            }
            (Method::DELETE, Some(stored)) => {
                self.record("delete", &path);
                (200, stored.clone())
            }
            _ => (404, missing()),
        };
        let response = Response::builder().status(code);
        let response = response.header("content-type", "application/json");
        Ok(response.body(Body::from(text.into_bytes()))?)
    }

    /// Records a write to an object, unless it is a status.
    fn record(&self, verb: &'static str, path: &str) {
        let mut parts = path.rsplit('/');
        let (Some(name), Some(resource)) = (parts.next(), parts.next()) else {
            return;
        };
        if name == "status" {
            return;
        }
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.push(Write {
            verb,
            resource: resource.to_owned(),
            name: name.to_owned(),
        });
    }
}

/// The object as a server would store it.
fn as_stored(mut object: Value) -> String {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.entry("uid").or_insert_with(|| json!("not-stored"));
        metadata
            .entry("resourceVersion")
            .or_insert_with(|| json!("1"));
    }
    object.to_string()
}

fn missing() -> String {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": "NotFound", "code": 404, "message": "not in the snapshot",
    });
    status.to_string()
}
