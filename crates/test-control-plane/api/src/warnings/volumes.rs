//! Warnings about volumes and claims.

use serde_json::Value;

use super::fractions::{NULL, fractional, is_fractional};
use super::node_terms::of_term;
use super::paths;
use crate::members::{list, list_at, text_at};

/// An annotation that chose the class of a claim or volume.
pub(super) const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Sources of volumes whose drivers are gone, in the order of warnings.
const OLD_SOURCES: [(&str, &str); 9] = [
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Sources of persistent volumes among the old ones, in the order of warnings.
const OLD_VOLUMES: [&str; 6] = [
    "cephfs",
    "photonPersistentDisk",
    "scaleIO",
    "storageos",
    "glusterfs",
    "rbd",
];

/// Returns the name of a source in warnings.
fn shown(source: &str) -> &str {
    if source == "storageos" {
        "storageOS"
    } else {
        source
    }
}

/// The warnings about the volumes of a pod.
pub(super) fn of_volumes(spec: &Value, at: &str, found: &mut Vec<String>) {
    for (i, volume) in list(spec, "volumes").enumerate() {
        let place = format!("{at}.volumes[{i}]");
        for (source, message) in OLD_SOURCES {
            // The claim of a pod comes before the last two.
            if source == "cephfs"
                && let Some(claim) = volume.pointer("/ephemeral/volumeClaimTemplate/spec")
            {
                let place = format!("{place}.ephemeral.volumeClaimTemplate.spec");
                of_claim(claim, &place, found);
            }
            if volume.get(source).is_some_and(|source| !source.is_null()) {
                found.push(format!("{place}.{}: {message}", shown(source)));
            }
        }
    }
    for volume in list(spec, "volumes") {
        paths::of_volume(volume, found);
    }
}

/// The warnings about the sizes in the spec of a claim.
///
/// Upstream: `GetWarningsForPersistentVolumeClaimSpec`.
pub(super) fn of_claim(spec: &Value, path: &str, found: &mut Vec<String>) {
    for list in ["requests", "limits"] {
        let storage = spec.pointer(&format!("/resources/{list}/storage"));
        if let Some(quantity) = storage.filter(|quantity| is_fractional(quantity)) {
            let place = format!("{path}.resources.{list}[storage]");
            found.push(fractional(&place, quantity));
        }
    }
}

/// The warnings about a persistent volume.
///
/// Upstream: `warningsForPersistentVolumeSpecAndMeta`.
pub(super) fn of_volume(volume: &Value, found: &mut Vec<String>) {
    let annotations = volume.pointer("/metadata/annotations").unwrap_or(&NULL);
    for (key, message) in [
        (
            STORAGE_CLASS,
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            "volume.beta.kubernetes.io/mount-options",
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ] {
        if annotations.get(key).is_some() {
            found.push(format!("metadata.annotations[{key}]: {message}"));
        }
    }
    if text_at(volume, "/spec/persistentVolumeReclaimPolicy") == "Recycle" {
        found.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
             Instead, the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let terms = list_at(volume, "/spec/nodeAffinity/required/nodeSelectorTerms");
    for (i, term) in terms.enumerate() {
        let place = format!("spec.nodeAffinity.required.nodeSelectorTerms[{i}]");
        of_term(term, false, &place, found);
    }
    let spec = volume.get("spec").unwrap_or(&NULL);
    for source in OLD_VOLUMES {
        let row = OLD_SOURCES.iter().find(|(name, _)| *name == source);
        if let Some((_, message)) = row
            && spec.get(source).is_some_and(|source| !source.is_null())
        {
            found.push(format!("spec.{}: {message}", shown(source)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn old_sources_are_named() {
        let volumes = json!({"volumes": [{"name": "v", "storageos": {}}, {"rbd": {}}]});
        let mut found = Vec::new();
        of_volumes(&volumes, "spec", &mut found);
        let expected = [
            "spec.volumes[0].storageOS: deprecated in v1.22, non-functional in v1.25+",
            "spec.volumes[1].rbd: deprecated in v1.28, non-functional in v1.31+",
        ];
        assert_eq!(found, expected);
    }
}
