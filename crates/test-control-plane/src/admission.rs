//! Admission hooks: code of a test that looks at every write before it is stored, and may change
//! or deny it, as mutating and validating webhooks do.

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use crate::auth::Identity;
use crate::kinds::Kind;
use crate::object::Draft;
use crate::route::{ResourceRequest, Verb};
use crate::server::ApiServer;
use crate::status::{ApiError, ApiResult};
use crate::write::stored;

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

    fn all(&self) -> Vec<Named> {
        let hooks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        hooks.clone()
    }

    fn is_empty(&self) -> bool {
        let hooks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        hooks.is_empty()
    }
}

impl ApiServer {
    /// Asks the hooks about an object that is about to be stored; whether they changed it.
    ///
    /// # Errors
    ///
    /// A hook denies the write.
    pub(crate) fn review_write(
        &self,
        request: &ResourceRequest,
        old: Option<&Draft>,
        new: &mut Draft,
        dry_run: bool,
    ) -> ApiResult<bool> {
        // What a post to a subresource changes was asked about as that.
        let is_posted = old.is_some() && request.verb == Verb::Create;
        if is_posted || self.admission().is_empty() {
            return Ok(false);
        }
        let kind = stored(request.kind);
        let object = new.to_value();
        let name = new.metadata().name().to_owned();
        let operation = match old {
            None => Operation::Create,
            Some(_) => Operation::Update,
        };
        let reviewed = self.review_all(AdmissionRequest {
            name: &name,
            object: object.clone(),
            old_object: old.map(Draft::to_value).unwrap_or_default(),
            ..question(request, operation, dry_run)
        })?;
        if reviewed == object {
            return Ok(false);
        }
        // What is kept verbatim stays so unless the hook changed it.
        let data = new
            .data
            .take()
            .filter(|_| reviewed["data"] == object["data"]);
        *new = Draft::from_value(kind, reviewed);
        new.data = data.or_else(|| new.data.take());
        Ok(true)
    }

    /// Asks the hooks about a body that is posted to a subresource.
    ///
    /// # Errors
    ///
    /// A hook denies the write.
    pub(crate) fn review_posted(
        &self,
        request: &ResourceRequest,
        body: &Value,
        dry_run: bool,
    ) -> ApiResult<()> {
        if self.admission().is_empty() {
            return Ok(());
        }
        self.review_all(AdmissionRequest {
            object: body.clone(),
            ..question(request, Operation::Create, dry_run)
        })?;
        Ok(())
    }

    /// Asks the hooks about an object that is about to be deleted. What an eviction deletes was
    /// asked about as an eviction.
    ///
    /// # Errors
    ///
    /// A hook denies the write.
    pub(crate) fn review_deletion(
        &self,
        request: &ResourceRequest,
        old: &Draft,
        dry_run: bool,
    ) -> ApiResult<()> {
        let asked = matches!(request.verb, Verb::Delete | Verb::DeleteCollection);
        if self.admission().is_empty() || !asked {
            return Ok(());
        }
        self.review_all(AdmissionRequest {
            old_object: old.to_value(),
            ..question(request, Operation::Delete, dry_run)
        })?;
        Ok(())
    }

    /// The object as the hooks leave it.
    fn review_all(&self, mut request: AdmissionRequest<'_>) -> ApiResult<Value> {
        for (name, hook) in self.admission().all() {
            hook.review(&mut request)
                .map_err(|denial| denial.into_error(&name, &request))?;
        }
        Ok(request.object)
    }
}

/// What hooks are asked about a request, without the objects.
fn question(
    request: &ResourceRequest,
    operation: Operation,
    dry_run: bool,
) -> AdmissionRequest<'_> {
    AdmissionRequest {
        operation,
        kind: stored(request.kind),
        subresource: request.target.subresource(),
        namespace: &request.namespace,
        name: &request.name,
        user: request.user.as_deref(),
        dry_run,
        object: Value::Null,
        old_object: Value::Null,
    }
}

impl Denial {
    fn into_error(self, hook: &str, request: &AdmissionRequest<'_>) -> ApiError {
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
