//! The shipped manifests, rendered like kubectl and helm do, without these programs.

mod chart;
mod kustomize;
mod template;
mod yaml;

use std::path::{Path, PathBuf};

pub use chart::Chart;
pub use kustomize::{build, build_with};
pub use yaml::documents;

use serde_json::Value;

/// Folder of all deployment manifests.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/controller-manager/deploy")
}

/// Path of a shipped kustomization, such as `overlays/managed`.
pub fn kustomization(name: &str) -> PathBuf {
    folder().join("kustomize").join(name)
}

/// Kind, namespace and name of an object.
pub fn key(object: &Value) -> (String, String, String) {
    let text = |pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    (
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
    )
}

/// Returns true if the embedded API server serves this kind, among the shipped ones.
pub fn is_embedded(kind: &str) -> bool {
    !["FlowSchema", "NetworkPolicy", "ServiceMonitor"].contains(&kind)
}

/// Returns true if this kind is cluster-scoped, among the shipped ones.
pub fn is_cluster_scoped(kind: &str) -> bool {
    [
        "ClusterRole",
        "ClusterRoleBinding",
        "FlowSchema",
        "Namespace",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]
    .contains(&kind)
}

/// API path of the collection of an object of a shipped kind.
pub fn collection(object: &Value) -> String {
    let (kind, namespace, _) = key(object);
    let api = match object["apiVersion"].as_str() {
        Some("v1") | None => "/api/v1".to_owned(),
        Some(version) => format!("/apis/{version}"),
    };
    let plural = match kind.to_lowercase() {
        kind if kind.ends_with('y') => format!("{}ies", kind.trim_end_matches('y')),
        kind => format!("{kind}s"),
    };
    if is_cluster_scoped(&kind) {
        format!("{api}/{plural}")
    } else {
        format!("{api}/namespaces/{namespace}/{plural}")
    }
}
