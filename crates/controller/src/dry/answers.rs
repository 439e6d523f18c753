//! Responses to the requests of a dry sync.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use kube_apimachinery::json::parse;
use kube_apimachinery::strategic_merge;
use serde_json::{Value, json};
use statefulset_controller_util::consistency::{Caches, TrackedResource};
use tower::BoxError;

use super::objects;
use super::write::{DryVerb, DryWrite};

/// The resources that a sync reads and writes.
const RESOURCES: [TrackedResource; 4] = [
    TrackedResource::Pods,
    TrackedResource::PersistentVolumeClaims,
    TrackedResource::StatefulSets,
    TrackedResource::ControllerRevisions,
];

/// Responses from the caches, overlaid by the sync's own writes.
pub(super) struct Answers {
    caches: Caches,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Objects after the sync's writes; `None` for deleted ones.
    written: BTreeMap<(TrackedResource, String), Option<String>>,
    writes: Vec<DryWrite>,
    /// Body of the last status write.
    status: Option<String>,
}

/// The object of a request.
struct Target {
    resource: TrackedResource,
    namespace: String,
    /// Empty for a creation.
    name: String,
    /// True for the status.
    is_status: bool,
    /// True for an eviction.
    is_eviction: bool,
}

impl Target {
    /// Splits a path such as `/api/v1/namespaces/ns/pods/web-0`.
    fn of(path: &str) -> Option<Self> {
        let (_, path) = path.split_once("/namespaces/")?;
        let mut segments = path.split('/');
        let namespace = segments.next()?.to_owned();
        let plural = segments.next()?;
        let resource = RESOURCES
            .into_iter()
            .find(|it| it.resource().plural == plural)?;
        let name = segments.next().unwrap_or_default().to_owned();
        let part = segments.next();
        Some(Self {
            resource,
            namespace,
            name,
            is_status: part == Some("status"),
            is_eviction: part == Some("eviction"),
        })
    }
}

/// A response: its code and its body.
type Answer = (StatusCode, String);

impl Answers {
    pub(super) fn new(caches: Caches) -> Self {
        Self {
            caches,
            state: Mutex::default(),
        }
    }

    /// Returns the writes so far, and the body of the status write.
    pub(super) fn take_writes(&self) -> (Vec<DryWrite>, Option<String>) {
        let mut state = self.state();
        (std::mem::take(&mut state.writes), state.status.take())
    }

    /// Responds to a request.
    ///
    /// # Errors
    ///
    /// The body can't be read. Bodies are in memory, so that never happens.
    pub(super) async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let body = String::from_utf8_lossy(&body).into_owned();
        let (code, text) = match Target::of(parts.uri.path()) {
            Some(target) => self.act(&parts.method, target, body),
            None => not_found(parts.uri.path()),
        };
        let response = Response::builder().status(code);
        let response = response.header("content-type", "application/json");
        Ok(response.body(Body::from(text.into_bytes()))?)
    }

    fn act(&self, method: &Method, mut target: Target, body: String) -> Answer {
        if target.name.is_empty() {
            target.name = name_of(&body);
        }
        let stored = self.stored(&target);
        let verb = match *method {
            // An eviction is a deletion, unless a budget forbids it.
            Method::POST if target.is_eviction => DryVerb::Delete,
            Method::POST => DryVerb::Create,
            Method::PUT => DryVerb::Update,
            Method::PATCH => DryVerb::Patch,
            Method::DELETE => DryVerb::Delete,
            _ => {
                return stored.map_or_else(
                    || not_found(&target.name),
                    |stored| (StatusCode::OK, stored),
                );
            }
        };
        let sent = body.clone();
        let answer = self.write(verb, &target, stored, body);
        self.record(verb, &target, sent, !answer.0.is_success());
        answer
    }

    fn write(
        &self,
        verb: DryVerb,
        target: &Target,
        stored: Option<String>,
        body: String,
    ) -> Answer {
        match (verb, stored) {
            (DryVerb::Create, Some(_)) => already_exists(target),
            (DryVerb::Create, None) => {
                let created = as_created(body);
                self.store(target, Some(created.clone()));
                (StatusCode::CREATED, created)
            }
            (_, None) => not_found(&target.name),
            (DryVerb::Update, Some(_)) => {
                if !target.is_status {
                    self.store(target, Some(body.clone()));
                }
                (StatusCode::OK, body)
            }
            (DryVerb::Patch, Some(stored)) => {
                let patched = patched(target, stored, &body);
                self.store(target, Some(patched.clone()));
                (StatusCode::OK, patched)
            }
            (DryVerb::Delete, Some(stored)) => {
                // A deleted pod terminates first.
                if target.resource == TrackedResource::ControllerRevisions {
                    self.store(target, None);
                }
                (StatusCode::OK, stored)
            }
        }
    }

    /// The object as the sync's next read would see it.
    fn stored(&self, target: &Target) -> Option<String> {
        let key = (target.resource, target.name.clone());
        if let Some(written) = self.state().written.get(&key) {
            return written.clone();
        }
        objects::text(
            &self.caches,
            target.resource,
            &target.namespace,
            &target.name,
        )
    }

    fn store(&self, target: &Target, text: Option<String>) {
        let key = (target.resource, target.name.clone());
        self.state().written.insert(key, text);
    }

    fn record(&self, verb: DryVerb, target: &Target, body: String, is_refused: bool) {
        let mut state = self.state();
        if target.is_status {
            state.status = Some(body);
            return;
        }
        state.writes.push(DryWrite {
            verb,
            resource: target.resource,
            name: target.name.clone(),
            body,
            is_refused,
        });
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name in an object's metadata; empty without one.
fn name_of(body: &str) -> String {
    let object = parse(body).unwrap_or_default();
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}

/// The object as a server would store it: with a uid and a version.
fn as_created(body: String) -> String {
    let Ok(mut object) = parse(&body) else {
        return body;
    };
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.entry("uid").or_insert_with(|| json!("not-stored"));
        metadata
            .entry("resourceVersion")
            .or_insert_with(|| json!("1"));
    }
    object.to_string()
}

/// The object after a strategic patch; unchanged if the patch can't be applied.
fn patched(target: &Target, stored: String, patch: &str) -> String {
    let kind = target.resource.resource().kind;
    let merged = match (parse(&stored), parse(patch)) {
        (Ok(object), Ok(patch)) => strategic_merge::apply(kind, &object, &patch).ok(),
        _ => None,
    };
    merged.map_or(stored, |merged| merged.to_string())
}

fn not_found(name: &str) -> Answer {
    let message = format!("{name:?} not found");
    failure(StatusCode::NOT_FOUND, "NotFound", &message)
}

fn already_exists(target: &Target) -> Answer {
    let message = format!("{} {:?} already exists", target.resource, target.name);
    failure(StatusCode::CONFLICT, "AlreadyExists", &message)
}

fn failure(code: StatusCode, reason: &str, message: &str) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": reason, "code": code.as_u16(), "message": message,
    });
    (code, status.to_string())
}
