//! An in-process API: stores objects, records calls, and injects failures.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a fake may panic on a test's mistakes"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;

use crate::{error::Error, resource::Resource, rest::RestClient};

pub use action::{Action, Verb};
pub use fault::{CallError, CallFault};
pub use log::CapturedLog;
#[cfg(test)]
pub(crate) use test_object::TestObject;

use tracker::Tracker;

mod action;
mod fault;
mod log;
mod merge;
#[cfg(test)]
pub(crate) mod message;
#[cfg(test)]
mod test_object;
mod tracker;

/// A reaction's response: none to pass the call to the next reaction, a body, or an error. An error
/// other than [`Error::Api`] reaches the caller as a transport failure.
pub type Reaction = Box<dyn Fn(&Action) -> Option<Result<String, Error>> + Send>;

/// A plain object tracker behind a real client.
///
/// It is not an API server. It sets no uid, defaults or version, validates nothing, and ignores
/// preconditions and finalizers. A create may respond with `AlreadyExists`, everything else `NotFound`. A
/// deletion removes at once. A PUT replaces the whole object, even on `/status`. A strategic merge
/// patch merges owner references by uid. A patch encodes the whole object again with sorted keys;
/// other writes keep their bytes.
///
/// Handles are cheap to clone and share their state.
/// Upstream: `fake.Clientset`, `testing.ObjectTracker`.
#[derive(Clone, Default)]
pub struct FakeClientset {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    tracker: Tracker,
    actions: Vec<Action>,
    faults: Vec<CallFault>,
    reactions: Vec<(Option<Verb>, String, Reaction)>,
}

impl FakeClientset {
    /// Creates an API without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a client of this API. Calls get their response immediately, so a task doesn't yield at
    /// them.
    pub fn rest_client(&self) -> RestClient {
        RestClient::from_service(self.clone())
    }

    /// Stores an object's text as given, replacing one with the same name, without recording an
    /// action.
    pub fn load(&self, resource: &Resource, json: impl Into<String>) {
        self.state().tracker.load(resource.plural, json.into());
    }

    /// Removes an object without recording an action.
    pub fn unload(&self, resource: &Resource, namespace: &str, name: &str) {
        self.state()
            .tracker
            .unload(resource.plural, namespace, name);
    }

    /// Returns a resource's objects, ordered by namespace and name.
    pub fn objects(&self, resource: &Resource) -> Vec<Value> {
        let texts = self.raw_objects(resource);
        texts
            .iter()
            .map(|text| serde_json::from_str(text).expect("stored objects parse"))
            .collect()
    }

    /// Returns a resource's objects as text, ordered by namespace and name.
    pub fn raw_objects(&self, resource: &Resource) -> Vec<String> {
        self.state().tracker.list(resource.plural, "")
    }

    /// Returns one object.
    pub fn object(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Value> {
        let text = self.state().tracker.get(resource.plural, namespace, name)?;
        Some(serde_json::from_str(&text).expect("stored objects parse"))
    }

    /// Returns all actions so far, in order, including failed calls.
    pub fn actions(&self) -> Vec<Action> {
        self.state().actions.clone()
    }

    /// Clears the recorded actions. Upstream: `ClearActions`.
    pub fn clear_actions(&self) {
        self.state().actions.clear();
    }

    /// Adds a rule that makes calls fail. If several rules match a call, the earliest one with
    /// failures left applies.
    pub fn fail(&self, rule: CallFault) {
        self.state().faults.push(rule);
    }

    /// Lets a closure respond to calls with a verb (none for any) on a resource (`*` for any), before
    /// the faults and the tracker. The most recently added reaction runs first.
    /// Upstream: `PrependReactor`.
    pub fn react<F>(&self, verb: impl Into<Option<Verb>>, resource: &str, reaction: F)
    where
        F: Fn(&Action) -> Option<Result<String, Error>> + Send + 'static,
    {
        let entry = (
            verb.into(),
            resource.to_owned(),
            Box::new(reaction) as Reaction,
        );
        self.state().reactions.insert(0, entry);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, action: &Action) -> Result<String, Error> {
        let mut state = self.state();
        state.actions.push(action.clone());
        for (verb, resource, reaction) in &state.reactions {
            let concerned = verb.is_none_or(|verb| verb == action.verb)
                && (resource == "*" || *resource == action.resource);
            if concerned && let Some(answer) = reaction(action) {
                return answer;
            }
        }
        if let Some(rule) = state.faults.iter_mut().find(|rule| rule.applies_to(action)) {
            rule.times -= 1;
            return Err(rule.error.to_error(action));
        }
        state.tracker.apply(action)
    }
}

impl tower::Service<Request<Body>> for FakeClientset {
    type Response = Response<Body>;
    type Error = tower::BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let action = Action::from_request(&parts, &body)?;
            let created = action.verb == Verb::Create;
            match this.answer(&action) {
                Ok(text) => respond(if created { 201 } else { 200 }, text),
                Err(Error::Api(status)) => {
                    let mut body = serde_json::to_value(&status)?;
                    body["kind"] = "Status".into();
                    body["apiVersion"] = "v1".into();
                    respond(status.code, body.to_string())
                }
                Err(other) => Err(other.into()),
            }
        })
    }
}

fn respond(code: u16, text: String) -> Result<Response<Body>, tower::BoxError> {
    let builder = Response::builder().status(code);
    let builder = builder.header(http::header::CONTENT_TYPE, "application/json");
    Ok(builder.body(Body::from(text.into_bytes()))?)
}

#[cfg(test)]
mod tests;
