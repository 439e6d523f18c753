//! Audit logging of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use kube_test_control_plane_api::status::ApiError;
use tokio::time::Instant;

use crate::access::RequestIdentity;
use crate::audit::AuditEntry;
use crate::faults::RequestFacts;
use crate::incoming::Incoming;
use crate::route::Remarks;
use crate::state::ServerState;

/// A request to be logged.
pub(crate) struct Recording<'a> {
    pub state: &'a ServerState,
    pub incoming: &'a Incoming,
    pub identity: &'a RequestIdentity,
    pub(crate) facts: &'a RequestFacts,
    pub(crate) remarks: &'a Remarks,
    /// The response header `Audit-Id`.
    pub(crate) audit_id: &'a str,
    /// The names of the applied fault rules.
    pub(crate) fault: String,
    pub(crate) received: Timestamp,
    pub(crate) begun: Instant,
    pub(crate) is_in_log: AtomicBool,
}

impl Recording<'_> {
    /// Logs a resource request; `revision_before` is the store's revision before it was processed.
    pub(crate) fn finish(&self, revision_before: u64, code: u16, error: Option<&ApiError>) {
        self.is_in_log.store(true, Ordering::Relaxed);
        if !self.facts.is_resource() {
            return;
        }
        let revision_after = self.state.reads.store.revision();
        let mut entry = AuditEntry::new(self.facts, Arc::clone(&self.identity.user), self.received);
        entry.impersonator.clone_from(&self.identity.impersonator);
        self.audit_id.clone_into(&mut entry.audit_id);
        self.incoming
            .header(CONTENT_TYPE)
            .clone_into(&mut entry.content_type);
        // A slice of the read buffer would keep all of it in memory.
        entry.body = Bytes::copy_from_slice(&self.incoming.body);
        entry.body_size = entry.body.len();
        entry.latency = self.begun.elapsed();
        entry.code = code;
        if let Some(error) = error {
            error.reason.as_ref().clone_into(&mut entry.reason);
            error.message.clone_into(&mut entry.message);
        }
        entry.fault.clone_from(&self.fault);
        entry.annotations = self.remarks.annotations();
        entry.revision_before = revision_before;
        entry.revision_after = revision_after;
        self.state.audit.push(entry);
    }

    /// Logs the request as timed out, unless it was processed and only its response was late.
    pub(crate) fn give_up(&self) {
        if !self.is_in_log.load(Ordering::Relaxed) {
            self.finish(self.state.reads.store.revision(), 504, None);
        }
    }
}
