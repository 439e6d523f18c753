//! The resources that this program reads.

/// A resource to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Path of the group and version.
    base: &'static str,
    /// Name in paths and in RBAC rules.
    plural: &'static str,
    /// Name of one object.
    pub(crate) kind: &'static str,
}

impl Resource {
    const fn new(base: &'static str, plural: &'static str, kind: &'static str) -> Self {
        Self { base, plural, kind }
    }

    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let Self { base, plural, .. } = self;
        match namespace {
            Some(namespace) => format!("{base}/namespaces/{namespace}/{plural}"),
            None => format!("{base}/{plural}"),
        }
    }

    /// The place of the objects, for messages.
    pub(super) fn place(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("{} in namespace {namespace}", self.plural),
            None => self.plural.to_owned(),
        }
    }
}

/// StatefulSets.
pub const STATEFUL_SETS: Resource = Resource::new("/apis/apps/v1", "statefulsets", "StatefulSet");
/// ControllerRevisions.
pub const REVISIONS: Resource =
    Resource::new("/apis/apps/v1", "controllerrevisions", "ControllerRevision");
/// `DaemonSets`.
pub const DAEMON_SETS: Resource = Resource::new("/apis/apps/v1", "daemonsets", "DaemonSet");
/// `ReplicaSets`.
pub const REPLICA_SETS: Resource = Resource::new("/apis/apps/v1", "replicasets", "ReplicaSet");
/// `ReplicationControllers`.
pub const REPLICATION_CONTROLLERS: Resource =
    Resource::new("/api/v1", "replicationcontrollers", "ReplicationController");
/// Jobs.
pub const JOBS: Resource = Resource::new("/apis/batch/v1", "jobs", "Job");
/// Pods.
pub const PODS: Resource = Resource::new("/api/v1", "pods", "Pod");

/// Connections to the ports of pods.
pub(super) const POD_PROXIES: Resource = Resource::new("/api/v1", "pods/proxy", "Pod");
/// PersistentVolumeClaims.
pub const CLAIMS: Resource =
    Resource::new("/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim");
/// Persistent volumes.
pub const VOLUMES: Resource = Resource::new("/api/v1", "persistentvolumes", "PersistentVolume");
/// Namespaces.
pub const NAMESPACES: Resource = Resource::new("/api/v1", "namespaces", "Namespace");
/// Resource quotas.
pub const QUOTAS: Resource = Resource::new("/api/v1", "resourcequotas", "ResourceQuota");
/// Service accounts.
pub const SERVICE_ACCOUNTS: Resource =
    Resource::new("/api/v1", "serviceaccounts", "ServiceAccount");
/// Priority classes.
pub const PRIORITY_CLASSES: Resource = Resource::new(
    "/apis/scheduling.k8s.io/v1",
    "priorityclasses",
    "PriorityClass",
);
/// Events.
pub const EVENTS: Resource = Resource::new("/api/v1", "events", "Event");
/// Nodes.
pub const NODES: Resource = Resource::new("/api/v1", "nodes", "Node");
/// Disruption budgets.
pub const BUDGETS: Resource = Resource::new(
    "/apis/policy/v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
);
/// Leases.
pub const LEASES: Resource = Resource::new("/apis/coordination.k8s.io/v1", "leases", "Lease");
/// Cluster roles.
pub const CLUSTER_ROLES: Resource = Resource::new(
    "/apis/rbac.authorization.k8s.io/v1",
    "clusterroles",
    "ClusterRole",
);
/// Bindings of cluster roles.
pub const CLUSTER_ROLE_BINDINGS: Resource = Resource::new(
    "/apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings",
    "ClusterRoleBinding",
);
/// Flow schemas.
pub const FLOW_SCHEMAS: Resource = Resource::new(
    "/apis/flowcontrol.apiserver.k8s.io/v1",
    "flowschemas",
    "FlowSchema",
);
/// Configurations of validating webhooks.
pub const VALIDATING_WEBHOOKS: Resource = Resource::new(
    "/apis/admissionregistration.k8s.io/v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
);
/// Configurations of mutating webhooks.
pub const MUTATING_WEBHOOKS: Resource = Resource::new(
    "/apis/admissionregistration.k8s.io/v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
);
/// Validating admission policies.
pub const VALIDATING_POLICIES: Resource = Resource::new(
    "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
);
/// Bindings of validating admission policies.
pub const VALIDATING_POLICY_BINDINGS: Resource = Resource::new(
    "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_a_namespace_or_none() {
        assert_eq!(PODS.path(Some("db")), "/api/v1/namespaces/db/pods");
        assert_eq!(STATEFUL_SETS.path(None), "/apis/apps/v1/statefulsets");
    }
}
