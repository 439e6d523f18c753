//! The API resources used by the controller, and their URLs.

use std::fmt;

/// An API resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version within the group.
    pub version: &'static str,
    /// The name in URLs and in the server's messages.
    pub plural: &'static str,
    /// The kind of one object.
    pub kind: &'static str,
}

/// Pods.
pub const PODS: Resource = Resource::core("pods", "Pod");
/// Persistent volume claims.
pub const PERSISTENT_VOLUME_CLAIMS: Resource =
    Resource::core("persistentvolumeclaims", "PersistentVolumeClaim");
/// Stateful sets.
pub const STATEFUL_SETS: Resource = Resource::apps("statefulsets", "StatefulSet");
/// The revisions of stateful sets.
pub const CONTROLLER_REVISIONS: Resource =
    Resource::apps("controllerrevisions", "ControllerRevision");
/// Core events, which `kubectl describe` shows.
pub const EVENTS: Resource = Resource::core("events", "Event");
/// Service accounts.
pub const SERVICE_ACCOUNTS: Resource = Resource::core("serviceaccounts", "ServiceAccount");
/// Namespaces, which are cluster-scoped.
pub const NAMESPACES: Resource = Resource::core("namespaces", "Namespace");
/// Leases, for leader election.
pub const LEASES: Resource = Resource {
    group: "coordination.k8s.io",
    version: "v1",
    plural: "leases",
    kind: "Lease",
};
/// Admission policies that validate, which are cluster-scoped.
pub const VALIDATING_ADMISSION_POLICIES: Resource =
    Resource::admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy");
/// Bindings of these policies.
pub const VALIDATING_ADMISSION_POLICY_BINDINGS: Resource = Resource::admission(
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
);
/// Reviews of the client's own user.
pub const SELF_SUBJECT_REVIEWS: Resource = Resource {
    group: "authentication.k8s.io",
    version: "v1",
    plural: "selfsubjectreviews",
    kind: "SelfSubjectReview",
};

impl Resource {
    const fn core(plural: &'static str, kind: &'static str) -> Self {
        Self {
            group: "",
            version: "v1",
            plural,
            kind,
        }
    }

    const fn admission(plural: &'static str, kind: &'static str) -> Self {
        Self {
            group: "admissionregistration.k8s.io",
            version: "v1",
            plural,
            kind,
        }
    }

    const fn apps(plural: &'static str, kind: &'static str) -> Self {
        Self {
            group: "apps",
            version: "v1",
            plural,
            kind,
        }
    }

    /// Returns the resource without its version, as messages name it.
    pub const fn group_resource(&self) -> GroupResource {
        GroupResource {
            group: self.group,
            resource: self.plural,
        }
    }

    /// Returns the `apiVersion` of its objects: `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the collection's URL path; an empty `namespace` selects all namespaces.
    pub fn collection_path(&self, namespace: &str) -> String {
        let is_core = self.group.is_empty();
        let mut path = String::from(if is_core { "/api" } else { "/apis/" });
        path.extend([self.group, "/", self.version]);
        if !namespace.is_empty() {
            path.extend(["/namespaces/", namespace]);
        }
        path.extend(["/", self.plural]);
        path
    }

    /// Returns an object's URL path.
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        let mut path = self.collection_path(namespace);
        path.push('/');
        path.push_str(name);
        path
    }
}

/// A resource without its version; formats as `pods` or `statefulsets.apps`.
///
/// Upstream: `schema.GroupResource`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The plural name.
    pub resource: &'static str,
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(self.resource)
        } else {
            write!(f, "{}.{}", self.resource, self.group)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_resource_formats_like_server_messages() {
        assert_eq!(PODS.group_resource().to_string(), "pods");
        assert_eq!(
            STATEFUL_SETS.group_resource().to_string(),
            "statefulsets.apps"
        );
        assert_eq!(
            LEASES.group_resource().to_string(),
            "leases.coordination.k8s.io"
        );
    }

    #[test]
    fn paths_depend_on_group() {
        assert_eq!(PODS.collection_path(""), "/api/v1/pods");
        assert_eq!(
            PODS.object_path("ns", "web-0"),
            "/api/v1/namespaces/ns/pods/web-0"
        );
        assert_eq!(
            STATEFUL_SETS.collection_path(""),
            "/apis/apps/v1/statefulsets"
        );
        assert_eq!(
            CONTROLLER_REVISIONS.object_path("ns", "web-1"),
            "/apis/apps/v1/namespaces/ns/controllerrevisions/web-1"
        );
    }
}
