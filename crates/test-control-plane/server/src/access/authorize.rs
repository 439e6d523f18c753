//! Authorization of requests.

use kube_test_control_plane_api::kinds::Verb;
use kube_test_control_plane_api::status::ApiResult;

use crate::auth::Decision;
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::forbidden::{forbidden, forbidden_object};
use crate::auth::identity::{Identity, MASTERS, NODES, node_name};
use crate::auth::mode::AuthorizationMode;
use crate::auth::rbac::bootstrap_policy;
use crate::route::ResourceRequest;
use crate::state::Access;

/// Asks each mode in turn.
pub(crate) fn decide(access: &Access, user: &Identity, attributes: &Attributes<'_>) -> Decision {
    if user.is_in(MASTERS) {
        return Decision::Allowed(String::new());
    }
    let mut reasons = Vec::new();
    for mode in access.authorization.modes() {
        match ask(access, *mode, user, attributes) {
            Decision::NoOpinion(reason) => reasons.push(reason),
            allowed @ Decision::Allowed(_) => return allowed,
        }
    }
    reasons.retain(|reason| !reason.is_empty());
    Decision::NoOpinion(reasons.join("\n"))
}

fn ask(
    access: &Access,
    mode: AuthorizationMode,
    user: &Identity,
    attributes: &Attributes<'_>,
) -> Decision {
    match mode {
        AuthorizationMode::AlwaysAllow => Decision::Allowed(String::new()),
        AuthorizationMode::AlwaysDeny => Decision::NoOpinion("Everything is forbidden.".to_owned()),
        AuthorizationMode::Node => {
            let is_node = user.is_in(NODES) && node_name(&user.name).is_some();
            if is_node && bootstrap_policy::allows_node(attributes) {
                Decision::Allowed(String::new())
            } else {
                Decision::NoOpinion(String::new())
            }
        }
        AuthorizationMode::Rbac => access.policy_index().decide(user, attributes),
    }
}

/// Rejects unauthorized requests.
///
/// # Errors
///
/// 403 with user, verb and resource.
pub(crate) fn authorize(
    access: &Access,
    user: &Identity,
    attributes: &Attributes<'_>,
) -> ApiResult<()> {
    match decide(access, user, attributes) {
        Decision::Allowed(_) => Ok(()),
        Decision::NoOpinion(reason) => Err(forbidden(user, attributes, &reason)),
    }
}

/// Rejects an update or apply that would create an object, unless its sender may create it.
///
/// # Errors
///
/// 403 with only the authorizer's reason.
///
/// Upstream: `withAuthorization`.
pub(crate) fn authorize_create_on_update(
    access: &Access,
    request: &ResourceRequest,
) -> ApiResult<()> {
    let Some(user) = &request.user else {
        return Ok(());
    };
    let kind = &request.kind;
    let wanted = Attributes::resource(
        Verb::Create.name(),
        Resource {
            group: (&*kind.group).into(),
            plural: (&*kind.plural).into(),
            subresource: request.target.subresource().into(),
            namespace: request.namespace.as_str().into(),
            name: request.name.as_str().into(),
        },
    );
    match decide(access, user, &wanted) {
        Decision::Allowed(_) => Ok(()),
        Decision::NoOpinion(reason) => Err(forbidden_object(
            &kind.group,
            &kind.plural,
            &request.name,
            &reason,
        )),
    }
}
