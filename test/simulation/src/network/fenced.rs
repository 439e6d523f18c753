//! The API server behind a process in a run with a fence: it denies writes as its view of the label
//! and the policies says.

use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt as _, Full};
use kube_test_control_plane::faults::{FaultError, RequestFacts};
use kube_test_control_plane::reply::{BoxError, Reply, ResponseBody};
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use statefulset_fence::Policy;
use statefulset_fence::names::USER_DEFAULT;

use super::rejected::rejected;
use crate::api_servers::ApiServers;
use crate::record::is_write;

/// The controller that a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Serves the namespaces with the label.
    Instance,
    /// Stands for the built-in controller.
    BuiltIn,
}

/// The API server behind a process.
#[derive(Clone)]
pub struct Fenced {
    /// All API servers.
    pub servers: ApiServers,
    /// The number of this one.
    pub server: usize,
    /// The controller of the process.
    pub writer: Writer,
}

/// Field manager of the built-in controller.
const BUILT_IN_MANAGER: &str = "kube-controller-manager";

impl Fenced {
    /// Returns the URI of a request, for the built-in controller with its field manager.
    pub(super) fn named(&self, uri: &Uri, facts: &RequestFacts) -> Result<Uri, BoxError> {
        let managed = [Verb::Create, Verb::Update, Verb::Patch];
        let is_managed = facts.verb.is_some_and(|verb| managed.contains(&verb));
        if self.writer == Writer::Instance || !is_managed {
            return Ok(uri.clone());
        }
        let separator = if uri.query().is_some() { '&' } else { '?' };
        Ok(format!("{uri}{separator}fieldManager={BUILT_IN_MANAGER}").parse()?)
    }

    /// Returns the policy that denies a request now.
    pub(super) fn denial(&self, facts: &RequestFacts) -> Option<Policy> {
        let is_related = is_write(facts.verb, &facts.resource);
        let state = self.servers.seen_by(self.server);
        match self.writer {
            Writer::Instance => (is_related && state.denies_instances()).then_some(Policy::Mirror),
            Writer::BuiltIn => {
                let is_related = is_related || facts.resource == "events";
                (is_related && facts.verb.is_some_and(writes) && state.denies_built_in())
                    .then_some(Policy::Fence)
            }
        }
    }

    /// Responds to a probe, and to the question for the own user; no other request.
    pub(super) fn respond(
        &self,
        facts: &RequestFacts,
        body: &Bytes,
    ) -> Option<Result<Reply, BoxError>> {
        if facts.verb != Some(Verb::Create) {
            return None;
        }
        if facts.resource == "selfsubjectreviews" {
            let user = json!({"status": {"userInfo": {"username": USER_DEFAULT}}});
            return Some(created(&user));
        }
        let policy = probed(facts, body)?;
        let state = self.servers.seen_by(self.server);
        Some(if state.denies_probe(policy, &facts.namespace) {
            denied(policy, facts)
        } else {
            created(&json!({}))
        })
    }
}

fn writes(verb: Verb) -> bool {
    ![Verb::Get, Verb::List, Verb::Watch].contains(&verb)
}

/// Returns the policy whose probe a request creates.
fn probed(facts: &RequestFacts, body: &Bytes) -> Option<Policy> {
    if facts.resource != "controllerrevisions" {
        return None;
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let name = body.pointer("/metadata/name")?.as_str()?;
    let mut policies = [Policy::Fence, Policy::Mirror].into_iter();
    policies.find(|policy| policy.probe_name() == name)
}

/// Returns the response to a request that a policy denies.
pub(super) fn denied(policy: Policy, facts: &RequestFacts) -> Result<Reply, BoxError> {
    let message = policy.message().to_owned();
    rejected(&FaultError::Forbidden { message }, facts)
}

fn created(object: &Value) -> Result<Reply, BoxError> {
    let body = Full::new(Bytes::from(object.to_string()));
    let body: ResponseBody = body.map_err(Into::into).boxed_unsync();
    let response = http::Response::builder().status(201);
    Ok(response
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)?)
}
