//! Admission hooks: code of a test that looks at every write before it is stored, and may change
//! or deny it, as mutating and validating webhooks do.

use std::sync::{Arc, PoisonError, RwLock};

use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::status::ApiError;
use serde_json::Value;

use crate::auth::Identity;

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It creates an object, or posts to a subresource such as `eviction`.
    Create,
    /// It changes an object, by whatever verb.
    Update,
    /// It deletes an object.
    Delete,
}

/// A write that is about to be stored.
#[derive(Debug)]
pub struct AdmissionRequest<'a> {
    /// What it does.
    pub operation: Operation,
    /// The row of the resource.
    pub kind: &'static Kind,
    /// The subresource; empty for the object itself.
    pub subresource: &'static str,
    /// The namespace; empty for cluster-scoped resources.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// Who asks; none if the server itself does.
    pub user: Option<&'a Identity>,
    /// Whether nothing is stored in the end.
    pub dry_run: bool,
    /// The object as it would be stored, defaults included; of a subresource that is posted to,
    /// the body. Null for deletions. A hook may change it.
    pub object: Value,
    /// The object as it is stored; null for creates.
    pub old_object: Value,
}

/// Why a hook denies a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Denial {
    /// 403, in the words of a webhook of the hook's name.
    Webhook(String),
    /// 403, in the words of an admission plug-in, such as `exceeded quota: pods`.
    Forbidden(String),
    /// Any other error.
    Error(ApiError),
}

/// Looks at writes. Closures of this form are hooks.
pub trait AdmissionHook: Send + Sync {
    /// Lets a write pass, perhaps changed.
    ///
    /// # Errors
    ///
    /// Why it is denied.
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

/// The hooks of a server, asked in the order in which they were added. They see every write, those
/// of the control plane's own actors included, and a patch that races again each time it is tried.
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
    /// Adds a hook; its name stands in denials.
    pub fn add(&self, name: &str, hook: impl AdmissionHook + 'static) {
        let mut hooks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        hooks.push((name.to_owned(), Arc::new(hook)));
    }

    /// Removes the hooks of a name; whether there were any.
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
