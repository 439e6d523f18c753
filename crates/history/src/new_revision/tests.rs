//! Objects of new revisions.

use serde_json::Value;
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};
use statefulset_controller_util::testing::builders;

use super::*;

fn revision(set: &StatefulSet, collision_count: i32) -> NewRevision {
    NewRevision::new(
        set,
        &RevisionData::new(&set.spec.template).unwrap(),
        3,
        collision_count,
    )
}

/// Vector A of upstream's hashes.
const TEMPLATE: &str = r#"{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"registry.example/web:1","imagePullPolicy":"IfNotPresent","name":"web","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":10}}"#;

#[test]
fn name_and_label_hold_the_references_hash() {
    let template: Value = serde_json::from_str(TEMPLATE).unwrap();
    let set = builders::set("web").with("spec.template", template).build();
    assert_eq!(
        RevisionData::new(&set.spec.template)
            .unwrap()
            .recorded()
            .len(),
        424
    );
    for (collisions, hash) in [(0, "6bf549676b"), (1, "6bf549676c"), (10, "6d5bb849fc")] {
        let revision = revision(&set, collisions);
        assert_eq!(revision.name, format!("web-{hash}"));
        assert_eq!(revision.labels[HASH_LABEL], hash);
    }
    // Vector B: the same template in the form of versions before 1.34.
    let older =
        RevisionData::at(&set.spec.template, FeatureGates::at(KubeVersion::v1(33))).unwrap();
    assert_eq!(older.recorded().len(), 449);
    let older = NewRevision::new(&set, &older, 3, 0);
    assert_eq!(older.name, "web-799ffc7d7b");
    let first = revision(&set, 0);
    assert_eq!(first.name_for(2), "web-6bf5496768");
    assert_eq!(first.labels[HASH_LABEL], "6bf549676b", "it keeps the first");
}

#[test]
fn labels_come_from_template_and_annotations_from_set() {
    let set = builders::set("web")
        .with("metadata.annotations.note", "a<b")
        .with("spec.template.metadata.labels.tier", "db")
        .with("spec.template.metadata.annotations.no", "no")
        .build();
    let revision = revision(&set, 0);
    let keys: Vec<&str> = revision.labels.keys().map(String::as_str).collect();
    assert_eq!(keys, ["app", HASH_LABEL, "tier"]);
    let annotations: Vec<_> = revision.annotations.iter().collect();
    assert_eq!(annotations.len(), 1);
    assert_eq!(revision.annotations["note"], "a<b");
}

#[test]
fn body_has_exact_data_and_no_namespace() {
    let set = builders::set("web").image("a&b").build();
    let revision = revision(&set, 0);
    let body = revision.body("web-x");
    assert!(revision.data.contains(r"a\u0026b"));
    let data = format!(r#""data":{},"revision":3}}"#, revision.data);
    assert!(body.ends_with(&data), "{body}");
    let value: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        value["metadata"],
        json!({
            "name": "web-x",
            "labels": revision.labels,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "web-uid",
                "controller": true, "blockOwnerDeletion": true,
            }],
        })
    );
    assert_eq!(value["kind"], "ControllerRevision");
    assert_eq!(value["apiVersion"], "apps/v1");
}
