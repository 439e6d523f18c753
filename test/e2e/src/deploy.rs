//! The manifests that the controller ships with, as kubectl and helm would render them, without
//! either.

mod chart;
mod kustomize;
mod template;
mod yaml;

use std::path::{Path, PathBuf};

pub use chart::Chart;
pub use kustomize::{build, build_with};
pub use yaml::documents;

use serde_json::Value;

/// The folder of everything that deploys the controller.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/controller-manager/deploy")
}

/// A kustomization of the shipped folder, such as `overlays/managed`.
pub fn kustomization(name: &str) -> PathBuf {
    folder().join("kustomize").join(name)
}

/// What an object is: kind, namespace and name.
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

/// Whether the embedded API server has objects of this kind, among the kinds that are shipped.
pub fn is_embedded(kind: &str) -> bool {
    !["FlowSchema", "NetworkPolicy", "ServiceMonitor"].contains(&kind)
}

/// Whether objects of this kind stand in no namespace, among the kinds that are shipped.
pub fn is_cluster_scoped(kind: &str) -> bool {
    [
        "ClusterRole",
        "ClusterRoleBinding",
        "FlowSchema",
        "Namespace",
    ]
    .contains(&kind)
}

/// The path of the collection that an object of one of the shipped kinds belongs to.
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
