//! Tests of decoding: kept fields and memory use.

use std::sync::Arc;

use serde_json::{Value, json};
use statefulset_client::cache::indexer::CachedObject;

use crate::claim::Claim;
use crate::controller_revision::ControllerRevision;
use crate::pod::Pod;
use crate::stateful_set::StatefulSet;
use crate::testing::builders;

/// Maximum size of a pod without its own allocations, in bytes; raise it only for a good reason.
const POD_BYTES_MAX: usize = 200;
/// The same for a claim. 24 are its sizes and the state of its expansion.
const CLAIM_BYTES_MAX: usize = 128;

#[test]
fn compact_types_stay_compact() {
    assert!(size_of::<Pod>() <= POD_BYTES_MAX, "{}", size_of::<Pod>());
    assert!(
        size_of::<Claim>() <= CLAIM_BYTES_MAX,
        "{}",
        size_of::<Claim>()
    );
}

#[test]
fn unused_members_take_no_memory() {
    let set = builders::set("web").claim_template("data").build();
    let plain = builders::pod(&set, 0);
    let filler = "x".repeat(10_000);
    let large = plain
        .clone()
        .with(
            "spec.containers.0.env",
            json!([{"name": "A", "value": filler}]),
        )
        .with("metadata.managedFields", json!([{"manager": filler}]))
        .with("metadata.annotations.note", filler.as_str())
        .with("status.containerStatuses", json!([{"image": filler}]))
        .with("status.message", filler.as_str());
    assert!(large.text().len() > 50_000);
    assert_eq!(large.build(), plain.build());

    let plain = builders::claim(&set, "data", 0);
    let large = plain
        .clone()
        .with("spec.dataSource", json!({"name": filler}))
        .with("metadata.annotations.note", filler.as_str());
    assert_eq!(large.build(), plain.build());
}

#[test]
fn only_the_managed_fields_of_the_set_itself_are_left_out() {
    let fields = json!([{"manager": "a", "fieldsV1": {"f:x": {"\"]}": {}}}}]);
    let plain = builders::set("web").with("spec.template.metadata.managedFields", fields.clone());
    let set = plain.clone().with("metadata.managedFields", fields).build();
    let expected = plain.build();
    let template = set.spec.template.to_value().unwrap();
    assert!(template["metadata"]["managedFields"][0]["fieldsV1"].is_object());
    assert_eq!(template, expected.spec.template.to_value().unwrap());
    let status = &set.status;
    assert_eq!(
        set.with_status(status).unwrap(),
        expected.with_status(status).unwrap()
    );
}

#[test]
fn copies_of_a_set_share_large_parts() {
    let set = builders::set("web").claim_template("data").build();
    let copy = set.clone();
    let (ours, copied) = (&set.spec, &copy.spec);
    assert_eq!(
        ours.template.to_json().as_ptr(),
        copied.template.to_json().as_ptr()
    );
    assert!(Arc::ptr_eq(&ours.claim_templates, &copied.claim_templates));
    assert!(Arc::ptr_eq(&set.metadata, &copy.metadata));
    assert!(Arc::ptr_eq(&set.status, &copy.status));
}

#[test]
fn null_counts_as_absent() {
    let nulls: Value = json!({
        "metadata": {
            "name": "web", "namespace": null, "uid": null, "resourceVersion": null,
            "creationTimestamp": null, "deletionTimestamp": null, "labels": null,
            "annotations": null, "ownerReferences": null, "generation": null,
        },
        "spec": {
            "replicas": null, "ordinals": null, "selector": null, "template": null,
            "volumeClaimTemplates": null, "serviceName": null, "podManagementPolicy": null,
            "updateStrategy": null, "revisionHistoryLimit": null, "minReadySeconds": null,
            "persistentVolumeClaimRetentionPolicy": null, "volumes": null,
        },
        "status": null, "data": null, "revision": null,
    });
    let text = nulls.to_string();
    let set = StatefulSet::decode(&text).unwrap();
    assert_eq!(
        (set.spec.replicas, set.spec.revision_history_limit),
        (1, 10)
    );
    assert_eq!(set.spec.template.to_json(), "{}");
    assert!(!set.is_deleting());
    assert!(!Pod::decode(&text).unwrap().is_created());
    assert!(Claim::decode(&text).unwrap().owner_references.is_empty());
    let revision = ControllerRevision::decode(&text).unwrap();
    assert_eq!((&*revision.data.to_str(), revision.revision), ("", 0));
}

#[test]
fn any_deletion_timestamp_makes_a_pod_terminating() {
    let set = builders::set("web").build();
    for time in ["yesterday", "10000-01-01T11:59:59Z", "0001-01-01T00:00:00Z"] {
        let pod = builders::pod(&set, 0).with("metadata.deletionTimestamp", time);
        assert!(pod.build().is_terminating(), "{time}");
    }
}

#[test]
fn zero_transition_time_is_unset() {
    let set = builders::set("web").build();
    let pod = builders::pod(&set, 0).ready_since("0001-01-01T00:00:00Z");
    assert_eq!(pod.build().readiness.last_transition_time, None);
}

#[test]
fn escaped_strings_decode() {
    let pod = r#"{"metadata":{"name":"w\u0065b-0","labels":{"a":"\u003c"},
        "deletionTimestamp":"2026-03-01T11:00:00\u005a"}}"#;
    let pod = Pod::decode(pod).unwrap();
    assert_eq!(&*pod.name, "web-0");
    assert_eq!(pod.labels.get("a"), Some("<"));
    assert!(pod.is_terminating());
}
