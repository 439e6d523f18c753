//! Authentication, impersonation and authorization of a request.

use std::sync::Arc;

use kube_test_control_plane_api::status::{ApiError, ApiResult};

use super::authenticate::authenticate;
use super::authorize::authorize;
use super::impersonation::impersonate;
use crate::auth::attributes::Attributes;
use crate::auth::identity::{Identity, MASTERS};
use crate::incoming::Incoming;
use crate::state::Access;

/// The authenticated user of a request, or the error of its credentials.
#[derive(Debug)]
pub(crate) struct RequestIdentity {
    /// The effective user: the impersonated user, or else the sender. Anonymous for invalid
    /// credentials.
    pub user: Arc<Identity>,
    /// The sender, if it impersonates another user.
    pub(crate) impersonator: Option<Arc<Identity>>,
    refusal: Option<ApiError>,
}

/// Determines the sender and the effective user of a request.
pub(crate) fn identify(access: &Access, incoming: &Incoming) -> RequestIdentity {
    let refused = |user, error| RequestIdentity {
        user,
        impersonator: None,
        refusal: Some(error),
    };
    let sender = match authenticate(access, &incoming.headers, &incoming.sender) {
        Ok(sender) => sender,
        Err(error) => return refused(Arc::default(), error),
    };
    match impersonate(access, &sender, incoming) {
        Ok(None) => RequestIdentity {
            user: sender,
            impersonator: None,
            refusal: None,
        },
        Ok(Some(user)) => RequestIdentity {
            user,
            impersonator: Some(sender),
            refusal: None,
        },
        Err(error) => refused(sender, error),
    }
}

/// Authorizes a request.
///
/// # Errors
///
/// 401 for invalid credentials, 403 for missing permissions or a forbidden impersonation.
pub(crate) fn authorize_request(
    access: &Access,
    identity: &RequestIdentity,
    incoming: &Incoming,
) -> ApiResult<()> {
    if let Some(error) = &identity.refusal {
        return Err(error.clone());
    }
    if identity.user.is_in(MASTERS) {
        return Ok(());
    }
    let attributes = Attributes::of(&incoming.method, &incoming.path, &incoming.query);
    authorize(access, &identity.user, &attributes)
}
