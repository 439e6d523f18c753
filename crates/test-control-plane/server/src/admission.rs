//! Admission hooks, which are test code that reviews every write; and the data of admission policies
//! and webhooks.

#[cfg(feature = "cel")]
pub(crate) mod policy_index;
pub(crate) mod stored;
mod webhooks;

use std::sync::{Arc, PoisonError, RwLock};

use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::status::ApiError;
use serde_json::Value;

use crate::auth::Identity;

pub(crate) use webhooks::{Call, Webhooks};
pub use webhooks::{WebhookHandler, WebhookServices};

/// Operation of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Creates an object, or posts to a subresource such as `eviction`.
    Create,
    /// Changes an object, by update, patch or apply.
    Update,
    /// Deletes an object.
    Delete,
}

/// A phase of the review by policies and webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Changes the object.
    Mutating,
    /// Allows the request or denies it.
    Validating,
}

/// A write before it is stored.
#[derive(Debug)]
#[non_exhaustive]
pub struct AdmissionRequest<'a> {
    /// The operation.
    pub operation: Operation,
    /// The row of the resource.
    pub kind: &'a Arc<Kind>,
    /// The subresource; empty for the object itself.
    pub subresource: &'static str,
    /// The namespace; empty for cluster-scoped resources.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// The user; `None` for the server itself.
    pub user: Option<&'a Identity>,
    /// True if the write will not be stored.
    pub dry_run: bool,
    /// The object to store, with defaults, which a hook may change; or the body posted to a
    /// subresource, whose changes are ignored. Null for deletions.
    pub object: Value,
    /// The stored object; null for creates.
    pub old_object: Value,
}

/// A hook's reason to deny a write.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Denial {
    /// 403 with the message of a webhook with the hook's name.
    Webhook(String),
    /// 403 with the message of an admission plug-in, such as `exceeded quota: pods`.
    Forbidden(String),
    /// Any other error.
    Error(ApiError),
}

/// Reviews writes. Closures with this signature are hooks.
pub trait AdmissionHook: Send + Sync {
    /// Allows a write, possibly changed.
    ///
    /// # Errors
    ///
    /// The reason to deny the write.
    fn review(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Denial>;
}

impl<F> AdmissionHook for F
where
    F: Fn(&mut AdmissionRequest<'_>) -> Result<(), Denial> + Send + Sync,
{
    fn review(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Denial> {
        self(request)
    }
}

/// The hooks of a server, in the order of their registration. They review every write, including
/// those of the control plane's own actors. A patch that is retried after a conflict is reviewed
/// again.
#[derive(Clone, Default)]
pub struct AdmissionHooks(Arc<RwLock<Vec<Named>>>);

type Named = (String, Arc<dyn AdmissionHook>);

impl std::fmt::Debug for AdmissionHooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = self.all();
        f.debug_list()
            .entries(named.iter().map(|(name, _)| name))
            .finish()
    }
}

impl AdmissionHooks {
    /// Adds a hook; denials mention its name.
    pub fn add(&self, name: &str, hook: impl AdmissionHook + 'static) {
        let mut hooks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        hooks.push((name.to_owned(), Arc::new(hook)));
    }

    /// Removes the hooks with this name. Returns true if there were any.
    pub fn remove(&self, name: &str) -> bool {
        let mut hooks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = hooks.len();
        hooks.retain(|(found, _)| found != name);
        hooks.len() < before
    }

    pub(crate) fn all(&self) -> Vec<Named> {
        let hooks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        hooks.clone()
    }

    pub(crate) fn is_empty(&self) -> bool {
        let hooks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        hooks.is_empty()
    }
}

impl Denial {
    pub(crate) fn into_error(self, hook: &str, request: &AdmissionRequest<'_>) -> ApiError {
        match self {
            Self::Webhook(why) => {
                let denied = format!("admission webhook {hook:?} denied the request");
                let message = if why.is_empty() {
                    format!("{denied} without explanation")
                } else {
                    format!("{denied}: {why}")
                };
                ApiError::new(403, "Forbidden", message)
            }
            Self::Forbidden(why) => ApiError::forbidden(request.kind, request.name, &why),
            Self::Error(error) => error,
        }
    }
}
