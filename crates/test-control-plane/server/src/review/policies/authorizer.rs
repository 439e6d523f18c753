//! The authorizer for the expressions of a policy.

use std::borrow::Cow;
use std::sync::Arc;

use kube_test_control_plane_api::admission::policies::{
    About, Authorizer, AuthorizerDecision, Question, Resource,
};

use crate::access;
use crate::auth::Identity;
use crate::auth::attributes::{Attributes, Resource as Asked, Subject};
use crate::state::Access;

/// Decides for the user of a request, and for service accounts.
#[derive(Debug)]
pub(super) struct RequestAuthorizer {
    pub(super) access: Arc<Access>,
    pub(super) user: Arc<Identity>,
}

impl Authorizer for RequestAuthorizer {
    fn decide(&self, question: &Question) -> AuthorizerDecision {
        let account = question.service_account.as_ref();
        let account = account.map(|(namespace, name)| {
            use crate::auth::AUTHENTICATED;
            Identity::service_account(namespace, name).group(AUTHENTICATED)
        });
        let user = account.as_ref().unwrap_or(&self.user);
        let attributes = attributes(question);
        let decision = access::decide(&self.access, user, &attributes);
        AuthorizerDecision {
            is_allowed: decision.is_allowed(),
            reason: decision.reason().to_owned(),
            error: None,
        }
    }
}

fn attributes(question: &Question) -> Attributes<'_> {
    let subject = match &question.about {
        About::Path(path) => Subject::Path(Cow::Borrowed(path)),
        About::Resource(Resource {
            group,
            resource,
            subresource,
            namespace,
            name,
        }) => Subject::Resource(Asked {
            group: Cow::Borrowed(group),
            plural: Cow::Borrowed(resource),
            subresource: Cow::Borrowed(subresource),
            namespace: Cow::Borrowed(namespace),
            name: Cow::Borrowed(name),
        }),
    };
    Attributes {
        verb: Cow::Borrowed(&question.verb),
        subject,
    }
}
