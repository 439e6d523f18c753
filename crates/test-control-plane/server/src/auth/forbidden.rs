//! 403 errors of authorization and admission.

use kube_test_control_plane_api::status::{ApiError, details};
use serde_json::json;

use super::attributes::{Attributes, Subject};
use super::identity::Identity;

/// Returns the error for an unauthorized request, with the authorizer's reason.
///
/// Upstream: `ForbiddenStatusError`.
pub(crate) fn forbidden(user: &Identity, attributes: &Attributes<'_>, reason: &str) -> ApiError {
    let name = &user.name;
    let verb = &attributes.verb;
    let what = match &attributes.subject {
        Subject::Path(path) => format!("path {path:?}"),
        Subject::Resource(wanted) => {
            let mut resource = wanted.plural.to_string();
            if !wanted.subresource.is_empty() {
                resource = format!("{resource}/{}", wanted.subresource);
            }
            let place = if wanted.namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {:?}", wanted.namespace)
            };
            format!(
                "resource {resource:?} in API group {:?} {place}",
                wanted.group
            )
        }
    };
    let mut why = escape(&format!("User {name:?} cannot {verb} {what}"));
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    match &attributes.subject {
        Subject::Path(_) => ApiError {
            details: Some(json!({})),
            ..ApiError::new(403, "Forbidden", format!("forbidden: {why}"))
        },
        Subject::Resource(wanted) => {
            forbidden_object(&wanted.group, &wanted.plural, &wanted.name, &why)
        }
    }
}

/// Returns the error for a forbidden object, or collection without a name.
///
/// Upstream: `NewForbidden`.
pub(crate) fn forbidden_object(group: &str, resource: &str, name: &str, why: &str) -> ApiError {
    let mut what = resource.to_owned();
    if !group.is_empty() {
        what = format!("{what}.{group}");
    }
    if !name.is_empty() {
        what = format!("{what} {name:?}");
    }
    ApiError {
        details: Some(details(name, group, resource)),
        ..ApiError::new(403, "Forbidden", format!("{what} is forbidden: {why}"))
    }
}

/// Escapes request text against interpretation as HTML.
fn escape(text: &str) -> String {
    if !text.contains(['&', '<', '>']) {
        return text.to_owned();
    }
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use kube_test_control_plane_api::query::Query;

    fn refusal(method: &Method, path: &str, reason: &str) -> ApiError {
        let user = Identity::user("alice");
        forbidden(
            &user,
            &Attributes::of(method, path, &Query::default()),
            reason,
        )
    }

    #[test]
    fn message_names_user_verb_resource_and_scope() {
        for (method, path, message, details) in [
            (
                Method::GET,
                "/api/v1/nodes/x",
                "nodes \"x\" is forbidden: User \"alice\" cannot get resource \"nodes\" in API \
                 group \"\" at the cluster scope",
                json!({"name": "x", "kind": "nodes"}),
            ),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/t4/statefulsets/web/status",
                "statefulsets.apps \"web\" is forbidden: User \"alice\" cannot patch resource \
                 \"statefulsets/status\" in API group \"apps\" in the namespace \"t4\"",
                json!({"name": "web", "group": "apps", "kind": "statefulsets"}),
            ),
            (
                Method::DELETE,
                "/apis/apps/v1/namespaces/t4/statefulsets",
                "statefulsets.apps is forbidden: User \"alice\" cannot deletecollection resource \
                 \"statefulsets\" in API group \"apps\" in the namespace \"t4\"",
                json!({"group": "apps", "kind": "statefulsets"}),
            ),
            (
                Method::GET,
                "/metrics",
                "forbidden: User \"alice\" cannot get path \"/metrics\"",
                json!({}),
            ),
            (
                Method::POST,
                "/<b>",
                "forbidden: User \"alice\" cannot post path \"/&lt;b&gt;\"",
                json!({}),
            ),
        ] {
            let error = refusal(&method, path, "");
            assert_eq!(error.message, message);
            assert_eq!(error.details, Some(details), "{path}");
            assert_eq!((error.code, &*error.reason), (403, "Forbidden"));
        }
    }

    #[test]
    fn message_ends_with_the_authorizers_reason() {
        let error = refusal(&Method::GET, "/metrics", "Everything is forbidden.");
        assert_eq!(
            error.message,
            "forbidden: User \"alice\" cannot get path \"/metrics\": Everything is forbidden."
        );
    }
}
