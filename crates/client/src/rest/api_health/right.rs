//! The RBAC permission that a request requires.

use std::fmt;

use http::Method;

use crate::resource::GroupResource;

/// The right that a request requires.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    pub(super) verb: &'static str,
    pub(super) resource: GroupResource,
    /// For example `status`; empty for the object itself.
    pub(super) subresource: String,
    /// Empty for all namespaces.
    pub(super) namespace: String,
}

impl Right {
    /// Returns the permission that a request with this method, path and query requires.
    pub(crate) fn of(method: &Method, resource: &GroupResource, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut segments = path.split('/').skip_while(|segment| {
            *segment != "namespaces"
                && (resource.resource.is_empty() || *segment != resource.resource)
        });
        let first = segments.next();
        let namespace = match first {
            Some("namespaces") if resource.resource != "namespaces" => {
                segments.next().unwrap_or_default()
            }
            _ => "",
        };
        if !namespace.is_empty() {
            segments.next();
        }
        let (name, subresource) = (segments.next(), segments.next());
        let verb = match (method.as_str(), name) {
            ("GET", Some(_)) => "get",
            ("GET", None) if query.contains("watch=true") => "watch",
            ("GET", None) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            _ => "delete",
        };
        Self {
            verb,
            resource: *resource,
            subresource: subresource.unwrap_or_default().to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    /// Returns true if the request is about a resource.
    pub(super) fn is_of_resource(&self) -> bool {
        !self.resource.resource.is_empty()
    }

    /// Returns true if the request lists or watches a collection, like caches do.
    pub(super) fn is_of_collection(&self) -> bool {
        matches!(self.verb, "list" | "watch") && self.is_of_resource()
    }

    /// Returns the role's rule that grants the permission.
    pub(super) fn rule(&self) -> String {
        let Self {
            verb,
            resource,
            subresource,
            ..
        } = self;
        let separator = if subresource.is_empty() { "" } else { "/" };
        format!(
            "{{apiGroups: [{:?}], resources: [\"{}{separator}{subresource}\"], verbs: [{verb:?}]}}",
            resource.group, resource.resource
        )
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        if self.namespace.is_empty() {
            f.write_str(" in all namespaces")
        } else {
            write!(f, " in the namespace {:?}", self.namespace)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{EVENTS, NAMESPACES, PODS, SERVICE_ACCOUNTS, STATEFUL_SETS};

    #[test]
    fn requests_map_to_permissions() {
        let (pods, sets) = (PODS.group_resource(), STATEFUL_SETS.group_resource());
        for (method, resource, target, expected) in [
            (
                Method::GET,
                pods,
                "/api/v1/pods?limit=500",
                "list pods in all namespaces",
            ),
            (
                Method::GET,
                pods,
                "/api/v1/pods?watch=true&resourceVersion=1",
                "watch pods in all namespaces",
            ),
            (
                Method::POST,
                pods,
                "/api/v1/namespaces/ns/pods",
                "create pods in the namespace \"ns\"",
            ),
            (
                Method::DELETE,
                pods,
                "/api/v1/namespaces/pods/pods/web-0",
                "delete pods in the namespace \"pods\"",
            ),
            (
                Method::GET,
                sets,
                "/apis/apps/v1/namespaces/ns/statefulsets/web",
                "get statefulsets.apps in the namespace \"ns\"",
            ),
            (
                Method::PUT,
                sets,
                "/apis/apps/v1/namespaces/ns/statefulsets/web/status",
                "update statefulsets.apps/status in the namespace \"ns\"",
            ),
            (
                Method::PATCH,
                EVENTS.group_resource(),
                "/api/v1/namespaces/ns/events/e",
                "patch events in the namespace \"ns\"",
            ),
            (
                Method::POST,
                SERVICE_ACCOUNTS.group_resource(),
                "/api/v1/namespaces/ns/serviceaccounts/web/token",
                "create serviceaccounts/token in the namespace \"ns\"",
            ),
            (
                Method::GET,
                NAMESPACES.group_resource(),
                "/api/v1/namespaces/ns",
                "get namespaces in all namespaces",
            ),
            (
                Method::POST,
                NAMESPACES.group_resource(),
                "/api/v1/namespaces",
                "create namespaces in all namespaces",
            ),
        ] {
            assert_eq!(Right::of(&method, &resource, target).to_string(), expected);
        }
    }

    #[test]
    fn permission_maps_to_rule() {
        let target = "/apis/apps/v1/namespaces/ns/statefulsets/web/status";
        let right = Right::of(&Method::PUT, &STATEFUL_SETS.group_resource(), target);
        assert_eq!(
            right.rule(),
            r#"{apiGroups: ["apps"], resources: ["statefulsets/status"], verbs: ["update"]}"#
        );
    }
}
