//! The audit log: every request that was about resources, readable by tests.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use crate::route::Verb;

/// One request and how it was answered.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// What the request did.
    pub verb: Verb,
    /// The API group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for all and for cluster-scoped resources.
    pub namespace: String,
    /// The object's name; of a create the name in its body. Empty for collections and for names
    /// that the server makes up.
    pub name: String,
    /// The raw query string.
    pub query: String,
    /// Who asked.
    pub user: String,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// The `Content-Type` of the body; that of a patch tells its kind.
    pub content_type: String,
    /// The body of the request.
    pub body: Bytes,
    /// The HTTP status code that the server answered with, also if a fault rule kept it from the
    /// client; 0 if nothing was done.
    pub code: u16,
    /// The fault rules that struck it, separated by commas; empty if none did.
    pub fault: String,
    /// The newest revision of the store once the answer was made.
    pub revision_after: u64,
}

impl AuditEntry {
    /// Whether the request could change something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, Verb::Get | Verb::List | Verb::Watch)
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
}

/// The newest requests, oldest first.
#[derive(Debug)]
pub struct AuditLog {
    entries: Mutex<VecDeque<AuditEntry>>,
    limit: usize,
}

impl AuditLog {
    /// A log that keeps the newest `limit` requests.
    pub fn new(limit: usize) -> Self {
        Self {
            entries: Mutex::default(),
            limit,
        }
    }

    pub(crate) fn push(&self, entry: AuditEntry) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push_back(entry);
        while entries.len() > self.limit {
            entries.pop_front();
        }
    }

    /// Every request that is still kept.
    pub fn entries(&self) -> Vec<AuditEntry> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().cloned().collect()
    }

    /// The requests that a test asks for.
    pub fn matching(&self, wanted: impl Fn(&AuditEntry) -> bool) -> Vec<AuditEntry> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().filter(|e| wanted(e)).cloned().collect()
    }

    /// Forgets everything so far.
    pub fn clear(&self) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clear();
    }
}
