//! An API in the process: keeps objects, records what was asked, and fails on request.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a fake may panic on the mistakes of a test"
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
pub use fault::{FaultError, FaultRule};
pub use log::CapturedLog;
#[cfg(test)]
pub(crate) use test_object::TestObject;

use tracker::Tracker;

mod action;
mod fault;
mod log;
mod merge;
#[cfg(test)]
mod test_object;
mod tracker;

/// What a reaction answers: nothing, to let the next one look; a body; or an error. An error that
/// is not [`Error::Api`] reaches the caller as a failure of the transport.
pub type Reaction = Box<dyn Fn(&Action) -> Option<Result<String, Error>> + Send>;

/// A plain object tracker behind a real client.
///
/// It is not an API server: it sets no uid, no defaults and no version, validates nothing, ignores
/// preconditions and finalizers. A create answers `AlreadyExists`, everything else `NotFound`; a
/// deletion removes at once; a PUT replaces the whole object, on `/status` too; a strategic merge
/// patch merges owner references by uid. A patch encodes the whole object anew, keys in order; other
/// writes keep the bytes that they were given.
///
/// Handles are cheap to clone and share the state.
/// Upstream: `fake.Clientset`, `testing.ObjectTracker`.
#[derive(Clone, Default)]
pub struct FakeClientset {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    tracker: Tracker,
    actions: Vec<Action>,
    faults: Vec<FaultRule>,
    reactions: Vec<(Option<Verb>, String, Reaction)>,
}

impl FakeClientset {
    /// An API without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// A client of this API. Calls are answered at once, so that what one task does between two
    /// waits is done before another gets its turn.
    pub fn rest_client(&self) -> RestClient {
        RestClient::from_service(self.clone())
    }

    /// Puts an object in, replacing one of the same name, without recording anything. Its text is
    /// kept as it is.
    pub fn load(&self, resource: &Resource, json: impl Into<String>) {
        self.state().tracker.load(resource.plural, json.into());
    }

    /// Takes an object out without recording anything.
    pub fn unload(&self, resource: &Resource, namespace: &str, name: &str) {
        self.state()
            .tracker
            .unload(resource.plural, namespace, name);
    }

    /// The objects of a resource, ordered by namespace and name.
    pub fn objects(&self, resource: &Resource) -> Vec<Value> {
        let texts = self.raw_objects(resource);
        texts
            .iter()
            .map(|text| serde_json::from_str(text).expect("stored objects parse"))
            .collect()
    }

    /// The objects of a resource as text, ordered by namespace and name.
    pub fn raw_objects(&self, resource: &Resource) -> Vec<String> {
        self.state().tracker.list(resource.plural, "")
    }

    /// One object.
    pub fn object(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Value> {
        let text = self.state().tracker.get(resource.plural, namespace, name)?;
        Some(serde_json::from_str(&text).expect("stored objects parse"))
    }

    /// Everything asked so far, in order, failed calls included.
    pub fn actions(&self) -> Vec<Action> {
        self.state().actions.clone()
    }

    /// Forgets the actions recorded so far. Upstream: `ClearActions`.
    pub fn clear_actions(&self) {
        self.state().actions.clear();
    }

    /// Makes calls fail by a rule. Of several rules that match a call the earliest with times left
    /// strikes.
    pub fn fail(&self, rule: FaultRule) {
        self.state().faults.push(rule);
    }

    /// Lets a closure answer calls of a verb (or of any) on a resource (`*` for any) before the
    /// faults and the tracker. The reaction added last is asked first.
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
        if let Some(rule) = state.faults.iter_mut().find(|rule| rule.strikes(action)) {
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
