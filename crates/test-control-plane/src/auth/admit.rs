//! The way of a request past authentication, impersonation and authorization.

use std::sync::Arc;

use super::attributes::Attributes;
use super::identity::{Identity, MASTERS};
use crate::incoming::Incoming;
use crate::server::ApiServer;
use crate::status::{ApiError, ApiResult};

/// A request whose sender is known.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Who it acts as: whoever is impersonated, or the sender.
    pub(crate) user: Arc<Identity>,
    refusal: Option<ApiError>,
}

impl ApiServer {
    /// Finds out who sends a request, and as whom it acts.
    ///
    /// # Errors
    ///
    /// 401 for credentials that are nobody's.
    pub(crate) fn recognize(&self, incoming: &Incoming) -> ApiResult<Admission> {
        let sender = self.authenticate(&incoming.headers, &incoming.sender)?;
        Ok(match self.impersonate(&sender, incoming) {
            Ok(user) => Admission {
                user: user.unwrap_or(sender),
                refusal: None,
            },
            Err(error) => Admission {
                user: sender,
                refusal: Some(error),
            },
        })
    }

    /// Lets a request in, or not.
    ///
    /// # Errors
    ///
    /// 403 for what the user may not do, or as whom the sender may not act.
    pub(crate) fn admit(&self, admission: &Admission, incoming: &Incoming) -> ApiResult<()> {
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
