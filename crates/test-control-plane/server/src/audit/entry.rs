//! One request and how it was answered.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use kube_test_control_plane_api::kinds::Verb;
use kube_test_control_plane_api::query::Query;
use serde_json::Value;

use crate::auth::Identity;
use crate::faults::RequestFacts;

/// The groups whose objects are questions: creating one changes nothing.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// One request and how it was answered.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// What the answer's header `Audit-Id` says.
    pub audit_id: String,
    /// When it came, by the server's clock.
    pub received: Timestamp,
    /// How long it took until it was done; delays that faults put before that are part of it.
    pub latency: Duration,
    /// What the request did.
    pub verb: Verb,
    /// The API group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The resource.
    pub resource: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for all and for cluster-scoped resources.
    pub namespace: String,
    /// The object's name; of a create the name in its body. Empty for collections and for names
    /// that the server makes up.
    pub name: String,
    /// The path.
    pub path: String,
    /// The raw query string.
    pub query: String,
    /// Who asked: the user's name, that of whoever was impersonated; empty if the credentials were
    /// nobody's.
    pub user: String,
    /// Who asked, with groups.
    pub identity: Arc<Identity>,
    /// Who sent the request, if that user impersonated another one.
    pub impersonator: Option<Arc<Identity>>,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// The `Content-Type` of the body; that of a patch tells its kind.
    pub content_type: String,
    /// The body of the request; empty if the log has dropped it, see
    /// [`ServerConfig::audit_bodies_max`](crate::config::ServerConfig::audit_bodies_max).
    pub body: Bytes,
    /// How long the body was, in bytes.
    pub body_size: usize,
    /// The HTTP status code that the server answered with, also if a fault rule kept it from the
    /// client; 0 if nothing was done.
    pub code: u16,
    /// The reason of an error; may be empty.
    pub reason: String,
    /// The text of an error.
    pub message: String,
    /// The fault rules that struck it, separated by commas; empty if none did.
    pub fault: String,
    /// The newest revision of the store before the request was carried out; 0 if it isn't known.
    pub revision_before: u64,
    /// The newest revision of the store once the answer was made; 0 if it isn't known.
    pub revision_after: u64,
}

impl AuditEntry {
    /// An entry of a request that is still to be answered.
    pub fn new(facts: &RequestFacts, identity: Arc<Identity>, received: Timestamp) -> Self {
        Self {
            audit_id: String::new(),
            received,
            latency: Duration::ZERO,
            verb: facts.verb.unwrap_or(Verb::Get),
            group: facts.group.clone(),
            version: facts.version.clone(),
            resource: facts.resource.clone(),
            subresource: facts.subresource.clone(),
            namespace: facts.namespace.clone(),
            name: facts.name.clone(),
            path: facts.path.clone(),
            query: facts.query.clone(),
            user: facts.user.clone(),
            identity,
            impersonator: None,
            user_agent: facts.user_agent.clone(),
            content_type: String::new(),
            body: Bytes::new(),
            body_size: 0,
            code: 0,
            reason: String::new(),
            message: String::new(),
            fault: String::new(),
            revision_before: 0,
            revision_after: 0,
        }
    }

    /// Whether the request could change something: no read, no review, no dry run.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, Verb::Get | Verb::List | Verb::Watch)
            && !REVIEWS.contains(&self.group.as_str())
            && !self.is_dry_run()
    }

    /// Whether the request may have changed something: a write that went well, unless it is known
    /// that it left everything as it was.
    pub fn is_change(&self) -> bool {
        let unchanged = self.revision_before != 0 && self.revision_before == self.revision_after;
        (200..300).contains(&self.code) && !unchanged && self.is_write()
    }

    /// Whether nothing was to be stored.
    pub fn is_dry_run(&self) -> bool {
        Query::parse(&self.query).get("dryRun").is_some()
            || self.verb == Verb::Delete
                && self
                    .body_value()
                    .pointer("/dryRun/0")
                    .is_some_and(|value| !value.is_null())
    }

    /// The kind of a patch: `json`, `merge`, `strategic` or `apply`; none if it is no patch.
    pub fn patch_type(&self) -> Option<&'static str> {
        if self.verb != Verb::Patch {
            return None;
        }
        let media_type = self.content_type.split(';').next().unwrap_or_default();
        Some(match media_type.trim() {
            "application/json-patch+json" => "json",
            "application/merge-patch+json" => "merge",
            "application/strategic-merge-patch+json" => "strategic",
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => "apply",
            _ => return None,
        })
    }

    /// The body as JSON; null if there is none or it isn't JSON.
    pub fn body_value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The request in one line, such as `create pods default/web-0 201`.
    pub fn summary(&self) -> String {
        let mut resource = self.resource.clone();
        if !self.subresource.is_empty() {
            resource = format!("{resource}/{}", self.subresource);
        }
        let verb = self.verb.name();
        format!(
            "{verb} {resource} {}/{} {}",
            self.namespace, self.name, self.code
        )
    }

    /// What fault rules see of the request.
    pub fn facts(&self) -> RequestFacts {
        RequestFacts {
            verb: Some(self.verb),
            path: self.path.clone(),
            query: self.query.clone(),
            group: self.group.clone(),
            version: self.version.clone(),
            resource: self.resource.clone(),
            subresource: self.subresource.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            user: self.user.clone(),
            user_agent: self.user_agent.clone(),
        }
    }
}
