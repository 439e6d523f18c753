//! The audit annotation of pod security admission, which itself isn't evaluated.

use kube_test_control_plane_api::kinds::{Subresource, Target, stored};
use kube_test_control_plane_api::object::Key;

use crate::route::ResourceRequest;
use crate::state::Reads;

/// The annotation with the enforced policy.
const ANNOTATION: &str = "pod-security.kubernetes.io/enforce-policy";

/// The policy of a namespace without other labels.
const PRIVILEGED: &str = "privileged:latest";

/// The labels of a namespace that choose another policy.
const LABELS: &str = "pod-security.kubernetes.io/";

/// Annotates a write of a pod in a namespace that allows all pods.
///
/// Upstream: `ValidatePod` of `k8s.io/pod-security-admission`
pub(super) fn annotate(reads: &Reads, request: &ResourceRequest) {
    let kind = stored(&request.kind);
    let is_evaluated = match request.requested {
        Target::Object => true,
        Target::Part(part) => {
            matches!(part, Subresource::EphemeralContainers | Subresource::Resize)
        }
    };
    if &*kind.storage != "pods" || !is_evaluated {
        return;
    }
    let namespace = reads
        .store
        .get(&Key::of("namespaces", "", &request.namespace));
    let allows_all = namespace.is_some_and(|namespace| {
        let mut labels = namespace.labels.iter();
        labels.all(|(label, policy)| !label.starts_with(LABELS) || policy == "privileged")
    });
    if allows_all {
        request
            .remarks
            .annotate(ANNOTATION.to_owned(), PRIVILEGED.to_owned());
    }
}
