//! The way of a request past authentication, impersonation and authorization.

use std::sync::Arc;

use kube_test_control_plane_api::status::{ApiError, ApiResult};

use crate::auth::attributes::Attributes;
use crate::auth::identity::{Identity, MASTERS};
use crate::incoming::Incoming;
use crate::server::ApiServer;

/// A request whose sender was looked at.
#[derive(Debug)]
pub struct Admission {
    /// Who it acts as: whoever is impersonated, or the sender; nobody if the credentials are nobody's.
    pub user: Arc<Identity>,
    /// The sender, if that is somebody else.
    pub(crate) impersonator: Option<Arc<Identity>>,
    refusal: Option<ApiError>,
}

impl ApiServer {
    /// Finds out who sends a request, and as whom it acts.
    pub(crate) fn recognize(&self, incoming: &Incoming) -> Admission {
        let refused = |user, error| Admission {
            user,
            impersonator: None,
            refusal: Some(error),
        };
        let sender = match self.authenticate(&incoming.headers, &incoming.sender) {
            Ok(sender) => sender,
            Err(error) => return refused(Arc::default(), error),
        };
        match self.impersonate(&sender, incoming) {
            Ok(None) => Admission {
                user: sender,
                impersonator: None,
                refusal: None,
            },
            Ok(Some(user)) => Admission {
                user,
                impersonator: Some(sender),
                refusal: None,
            },
            Err(error) => refused(sender, error),
        }
    }

    /// Lets a request in, or not.
    ///
    /// # Errors
    ///
    /// 401 for credentials that are nobody's, 403 for what the user may not do, or as whom the sender
    /// may not act.
    pub fn admit(&self, admission: &Admission, incoming: &Incoming) -> ApiResult<()> {
        if let Some(error) = &admission.refusal {
            return Err(error.clone());
        }
        if admission.user.is_in(MASTERS) {
            return Ok(());
        }
        let attributes = Attributes::of(&incoming.method, &incoming.path, &incoming.query);
        self.authorize(&admission.user, &attributes)
    }
}
