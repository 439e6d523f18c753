//! The object or collection that a request is about.

use std::sync::Arc;

use kube_test_control_plane_api::kinds::{Kind, Target, Verb};
use kube_test_control_plane_api::object::Key;
use tokio::time::Instant;

use super::Remarks;
use crate::auth::Identity;

/// A resource request.
#[derive(Clone, Debug)]
pub(crate) struct ResourceRequest {
    /// The row of the resource.
    pub(crate) kind: Arc<Kind>,
    /// The part of the object.
    pub(crate) target: Target,
    /// The namespace; empty for all and for cluster-scoped resources.
    pub(crate) namespace: String,
    /// The object's name; empty for collections. A watch of one object has it too.
    pub(crate) name: String,
    /// The verb.
    pub(crate) verb: Verb,
    /// The user; `None` for the server itself, which may do everything.
    pub(crate) user: Option<Arc<Identity>>,
    /// The part of the object in the URL, which other parts than `target` implement.
    pub(crate) requested: Target,
    /// Remarks of admission about the request.
    pub(crate) remarks: Remarks,
    /// The revision whose policies and webhooks apply; `None` for the newest.
    pub(crate) admission_revision: Option<u64>,
    /// The arrival of the request; `None` for the server itself.
    pub(crate) begun: Option<Instant>,
}

impl ResourceRequest {
    /// Returns true for a post to a subresource of an object.
    pub(crate) fn is_posted(&self) -> bool {
        self.verb == Verb::Create && self.requested != Target::Object
    }

    /// Returns the key of the object.
    pub(crate) fn key(&self) -> Key {
        Key::new(&self.kind, &self.namespace, &self.name)
    }
}
