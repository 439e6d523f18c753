//! A pod's claims, and the volumes that use them.

use serde_json::{Value, json};
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream::set;

use super::fixtures::pod;
use crate::stateful_set_utils::{
    Ordinal, persistent_volume_claims, storage_matches, update_storage,
};

fn fresh() -> Builder<Pod> {
    pod(&set(3).build(), 1)
}

/// Pods whose volumes don't match: none, none with a claim, and one with another claim.
fn broken() -> [Builder<Pod>; 3] {
    let mut without_claims = fresh().json();
    for volume in without_claims["spec"]["volumes"].as_array_mut().unwrap() {
        volume
            .as_object_mut()
            .unwrap()
            .remove("persistentVolumeClaim");
    }
    [
        fresh().with("spec.volumes", Value::Null),
        Builder::from_json(without_claims),
        fresh().with("spec.volumes.0.persistentVolumeClaim.claimName", "foo"),
    ]
}

fn matches(pod: &Builder<Pod>) -> bool {
    storage_matches(&set(3).build(), &pod.build())
}

#[test]
fn test_storage_matches() {
    assert!(matches(&fresh()));
    for pod in broken() {
        assert!(!matches(&pod), "{}", pod.text());
    }
    assert!(!matches(&fresh().with("metadata.name", "bar")));
}

#[test]
fn test_update_storage() {
    let set = set(3).build();
    for pod in broken() {
        assert!(!matches(&pod));
        let mut json = pod.json();
        update_storage(&set, Ordinal::from(1), &mut json);
        assert!(matches(&Builder::from_json(json)), "{}", pod.text());
    }
}

#[test]
fn test_get_persistent_volume_claims() {
    for (selector, template, expected) in [
        (json!(null), json!(null), json!(null)),
        (
            json!({"test": "test"}),
            json!(null),
            json!({"test": "test"}),
        ),
        (
            json!({"name": "foo"}),
            json!({"test": "test"}),
            json!({"name": "foo", "test": "test"}),
        ),
        (
            json!({"test": "foo"}),
            json!({"test": "test"}),
            json!({"test": "foo"}),
        ),
    ] {
        let set = set(1)
            .with("spec.selector.matchLabels", selector)
            .with("spec.volumeClaimTemplates.0.metadata.labels", template)
            .build();
        let claims = persistent_volume_claims(&set, Ordinal::from(0));
        let claims: Vec<_> = claims.collect();
        assert_eq!(claims.len(), 1);
        let mut claim = claims[0].to_value().unwrap();
        assert_eq!(claim["metadata"]["labels"].take(), expected);
        claim["metadata"].as_object_mut().unwrap().remove("labels");
        let desired = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "datadir-foo-0", "namespace": "default"},
            "spec": {"resources": {"requests": {"storage": "1"}}},
        });
        assert_eq!(claim, desired);
    }
}
