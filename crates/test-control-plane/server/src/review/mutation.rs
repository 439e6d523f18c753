//! The mutating review of a request in progress.

use std::mem;
use std::sync::Arc;

use serde_json::Value;

use super::input::Objects;
use super::reinvocation::Reinvocation;
use crate::route::ResourceRequest;
use crate::state::Access;

/// The mutating review of a request in progress.
pub(super) struct Mutation<'a> {
    pub(super) access: &'a Arc<Access>,
    pub(super) request: &'a ResourceRequest,
    /// The name of the object in the request; empty if it is still to be generated.
    pub(super) name: &'a str,
    pub(super) objects: Objects<'a>,
    pub(super) policies: Reinvocation<PolicyCall>,
    pub(super) webhooks: Reinvocation<String>,
    /// True if a policy or webhook changed the object.
    pub(super) is_changed: bool,
    /// True if the object was decoded since the server set times in it, which loses their fractions.
    pub(super) is_decoded: bool,
}

/// A mutating policy with a binding and parameters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PolicyCall {
    pub(super) policy: String,
    pub(super) binding: String,
    /// Namespace and name of the parameters; empty if there are none.
    pub(super) params: (String, String),
}

impl<'a> Mutation<'a> {
    pub(super) fn new(
        access: &'a Arc<Access>,
        request: &'a ResourceRequest,
        name: &'a str,
        objects: Objects<'a>,
    ) -> Self {
        Self {
            access,
            request,
            name,
            objects,
            policies: Reinvocation::default(),
            webhooks: Reinvocation::default(),
            is_changed: false,
            is_decoded: false,
        }
    }

    /// Returns true if the object has times of this request: those of its managers.
    pub(super) fn has_new_times(&self) -> bool {
        let managers = |object: &Option<Value>| {
            let object = object.as_ref()?;
            object.pointer("/metadata/managedFields").cloned()
        };
        let new = managers(&self.objects.object);
        !self.is_decoded && new.is_some() && new != managers(&self.objects.old_object)
    }

    /// Takes the object, which is null for a request without one.
    pub(super) fn take_object(&mut self) -> Value {
        mem::take(&mut self.objects.object).unwrap_or_default()
    }
}
