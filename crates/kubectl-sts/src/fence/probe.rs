//! Probes of the policies, and their paths.

use http::Method;
use serde_json::json;
use statefulset_fence::{PartKind, Policy};

use crate::cluster::Cluster;

/// Group and version of the policies.
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// The result of a probe.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Probed {
    /// The policy denied it.
    Denied,
    /// The server would store it.
    Accepted,
    /// It shows nothing, for this reason.
    Unclear(String),
}

/// Tries to create a policy's probe in a namespace, without storing it.
pub(super) async fn probe(cluster: &Cluster, policy: Policy, namespace: &str) -> Probed {
    let revision = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {"name": policy.probe_name()}, "revision": 1, "data": {},
    });
    let path = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions?dryRun=All");
    match cluster.send(Method::POST, &path, Some(&revision)).await {
        Ok(_) => Probed::Accepted,
        Err(kube::Error::Api(status))
            if status.code == 403 && status.message.ends_with(policy.message()) =>
        {
            Probed::Denied
        }
        Err(kube::Error::Api(status)) => Probed::Unclear(status.message.clone()),
        Err(error) => Probed::Unclear(error.to_string()),
    }
}

/// Path of the policies or bindings.
pub(super) fn collection(kind: PartKind) -> String {
    let plural = match kind {
        PartKind::Policy => "validatingadmissionpolicies",
        PartKind::Binding => "validatingadmissionpolicybindings",
    };
    format!("{ADMISSION}/{plural}")
}

/// Path of a policy or binding.
pub(super) fn path(kind: PartKind, name: &str) -> String {
    format!("{}/{name}", collection(kind))
}
