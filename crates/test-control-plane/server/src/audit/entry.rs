//! A logged request and its outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use kube_test_control_plane_api::kinds::Verb;
use kube_test_control_plane_api::query::Query;
use serde_json::Value;

use crate::auth::Identity;
use crate::faults::RequestFacts;

/// API groups whose creates are queries without side effects.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// A logged request and its outcome.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuditEntry {
    /// The response header `Audit-Id`.
    pub audit_id: String,
    /// Time of arrival by the server's clock.
    pub received: Timestamp,
    /// Processing time, including injected delays.
    pub latency: Duration,
    /// The verb.
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
    /// The object's name; for a create, the name in its body. Empty for collections and generated
    /// names.
    pub name: String,
    /// The path.
    pub path: String,
    /// The raw query string.
    pub query: String,
    /// The name of the effective user, which is the impersonated one, if any; empty for invalid
    /// credentials.
    pub user: String,
    /// The effective user with groups.
    pub identity: Arc<Identity>,
    /// The sender, if it impersonated another user.
    pub impersonator: Option<Arc<Identity>>,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// The `Content-Type` of the body, which determines the kind of a patch.
    pub content_type: String,
    /// The request body; empty if the log has dropped it, see
    /// [`ServerConfig::audit_bodies_max`](crate::config::ServerConfig::audit_bodies_max).
    pub body: Bytes,
    /// Size of the body in bytes.
    pub body_size: usize,
    /// The server's HTTP status code, even if a fault rule withheld the response; 0 if the request
    /// was not processed.
    pub code: u16,
    /// The reason of an error; may be empty.
    pub reason: String,
    /// The text of an error.
    pub message: String,
    /// The names of the applied fault rules, separated by commas; may be empty.
    pub fault: String,
    /// Annotations of admission: policies, webhooks and pod security, by key.
    pub annotations: BTreeMap<String, String>,
    /// The store's revision before the request was processed; 0 if unknown.
    pub revision_before: u64,
    /// The store's revision after the request was processed; 0 if unknown.
    pub revision_after: u64,
}

impl AuditEntry {
    /// Creates the entry of a request without a response.
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
            annotations: BTreeMap::new(),
            revision_before: 0,
            revision_after: 0,
        }
    }

    /// Reports whether the request is a write: no read, no review, no dry run.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, Verb::Get | Verb::List | Verb::Watch)
            && !REVIEWS.contains(&self.group.as_str())
            && !self.is_dry_run()
    }

    /// Reports whether the request may have changed an object: a successful write, unless it is
    /// known to be a no-op.
    pub fn is_change(&self) -> bool {
        let unchanged = self.revision_before != 0 && self.revision_before == self.revision_after;
        (200..300).contains(&self.code) && !unchanged && self.is_write()
    }

    /// Reports whether the server refused the request or failed to process it. Responses of fault rules
    /// don't count, and neither does the absence of an object that a client reads or deletes.
    pub fn is_error(&self) -> bool {
        let is_absent = self.code == 404 && matches!(self.verb, Verb::Get | Verb::Delete);
        self.code >= 400 && self.fault.is_empty() && !is_absent
    }

    /// Reports whether the request was a dry run.
    pub fn is_dry_run(&self) -> bool {
        Query::parse(&self.query).get("dryRun").is_some()
            || self.verb == Verb::Delete
                && self
                    .body_value()
                    .pointer("/dryRun/0")
                    .is_some_and(|value| !value.is_null())
    }

    /// Returns the kind of a patch: `json`, `merge`, `strategic` or `apply`; `None` for other
    /// requests.
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

    /// Returns the body as JSON; null if there is none or it isn't JSON.
    pub fn body_value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Summarizes the request in one line, such as `create pods default/web-0 201`.
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

    /// Returns the facts that fault rules match.
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
