//! The group versions that share the type of the bodies of deletions.

use serde_json::{Value, json};

/// The groups of upstream with their versions, served or not.
const GROUPS: &[(&str, &[&str])] = &[
    ("", &["v1"]),
    (
        "admissionregistration.k8s.io",
        &["v1", "v1alpha1", "v1beta1"],
    ),
    ("apps", &["v1", "v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1", "v1beta1"]),
    ("autoscaling", &["v1", "v2"]),
    ("batch", &["v1", "v1beta1"]),
    ("certificates.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("coordination.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("discovery.k8s.io", &["v1", "v1beta1"]),
    ("events.k8s.io", &["v1", "v1beta1"]),
    ("extensions", &["v1beta1"]),
    (
        "flowcontrol.apiserver.k8s.io",
        &["v1", "v1beta1", "v1beta2", "v1beta3"],
    ),
    ("internal.apiserver.k8s.io", &["v1alpha1"]),
    ("networking.k8s.io", &["v1", "v1beta1"]),
    ("node.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("policy", &["v1", "v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("resource.k8s.io", &["v1", "v1alpha3", "v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("storage.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("storagemigration.k8s.io", &["v1beta1"]),
];

/// Returns the kinds of the type: those of upstream, and that of a built-in group version.
pub(super) fn kinds(own: Option<(&str, &str)>) -> Value {
    let of_group = |(group, versions): &(&'static str, &'static [&'static str])| {
        let group = *group;
        let versions = versions.iter();
        versions.map(move |version| (group, *version))
    };
    let mut kinds: Vec<(&str, &str)> = GROUPS.iter().flat_map(of_group).collect();
    kinds.extend(own.filter(|own| !kinds.contains(own)));
    kinds.sort_unstable();
    let kinds = kinds.into_iter().map(
        |(group, version)| json!({"group": group, "version": version, "kind": "DeleteOptions"}),
    );
    kinds.collect()
}
