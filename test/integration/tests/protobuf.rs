//! Decoding of pods from protobuf, compared with their JSON. The test control plane encodes them.

use kube_apimachinery::protobuf::{Envelope, WireError, fields};
use kube_test_control_plane_api::response::represent::protobuf::answer;
use serde_json::{Value, json};
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_controller_util::pod::Pod;

/// A pod with every field that is read, each next to another.
fn full() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-0", "generateName": "web-", "namespace": "ns", "uid": "u", "generation": 3,
            "resourceVersion": "7", "creationTimestamp": "2026-03-01T11:58:38Z",
            "deletionTimestamp": "2026-03-01T12:00:08Z", "deletionGracePeriodSeconds": 30,
            "labels": {"controller-revision-hash": "web-1", "a": "", "": "b"},
            "annotations": {"name": "another"}, "finalizers": ["example.com/f"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x"},
                {"apiVersion": "v1", "kind": "Y", "name": "y", "uid": "y", "controller": false},
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s",
                    "controller": true, "blockOwnerDeletion": true},
                {"apiVersion": "v1", "kind": "Z", "name": "z", "uid": "z", "controller": true}],
            "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1",
                "time": "2026-03-01T11:58:38Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}}}]},
        "spec": {
            "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}],
            "hostname": "web-0", "subdomain": "web", "nodeName": "n",
            "volumes": [
                {"name": "cfg", "configMap": {"name": "c"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0", "readOnly": true}},
                {"name": "none", "persistentVolumeClaim": {"claimName": ""}},
                {"name": "dir", "emptyDir": {}}]},
        "status": {
            "phase": "Running", "podIP": "10.0.0.1", "reason": "Ready",
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-03-01T11:58:38Z"},
                {"type": "Ready", "status": "True", "reason": "False", "lastProbeTime": "2026-01-01T00:00:00Z",
                    "lastTransitionTime": "2026-03-01T11:59:38Z"},
                {"type": "Ready", "status": "False", "lastTransitionTime": null}],
            "containerStatuses": [{"name": "c", "ready": true, "image": "i", "imageID": "", "restartCount": 0}]},
    })
}

fn encoded(pod: &Value) -> Vec<u8> {
    answer(pod.to_string().as_bytes()).expect("a pod has a message")
}

fn decoded(message: &[u8]) -> Result<Pod, WireError> {
    decode(Envelope::read(message)?.raw)
}

fn decode(raw: &[u8]) -> Result<Pod, WireError> {
    Pod::FROM_PROTOBUF.expect("pods are read from protobuf")(raw)
}

#[test]
fn message_and_json_are_the_same_pod() {
    let cases = [
        ("/metadata/generation", json!(1)),
        ("/metadata/deletionTimestamp", Value::Null),
        ("/metadata/deletionTimestamp", json!("1969-12-31T23:59:58Z")),
        ("/metadata/labels", Value::Null),
        ("/metadata/labels", json!({"b": "\u{fffd}", "a": "ü"})),
        ("/metadata/ownerReferences", Value::Null),
        ("/metadata/ownerReferences/2/controller", json!(false)),
        (
            "/metadata/ownerReferences/2/blockOwnerDeletion",
            Value::Null,
        ),
        ("/metadata/resourceVersion", json!("18446744073709551615")),
        ("/metadata/name", json!("web-007")),
        ("/spec/volumes", Value::Null),
        ("/spec", json!({})),
        ("/status", json!({})),
        ("/status/phase", json!("Pending")),
        ("/status/phase", json!("")),
        ("/status/phase", json!("Sleeping")),
        ("/status/conditions/1/status", json!("False")),
        ("/status/conditions/1/status", json!("Unknown")),
        ("/status/conditions/1/type", json!("ready")),
        ("/status/conditions/1/lastTransitionTime", Value::Null),
        ("/status/conditions", Value::Null),
    ];
    for (member, value) in cases {
        let mut pod = full();
        *pod.pointer_mut(member).unwrap() = value;
        let expected = Pod::decode(&pod.to_string()).unwrap();
        let found = decoded(&encoded(&pod)).unwrap();
        assert_eq!(found, expected, "{member} of {pod}");
    }
}

#[test]
fn every_member_is_read() {
    let pod = full();
    let full = decoded(&encoded(&pod)).unwrap();
    assert_eq!(full, Pod::decode(&pod.to_string()).unwrap());
    assert_eq!(&*full.namespace, "ns");
    assert_eq!((&*full.uid, &*full.resource_version), ("u", "7"));
    assert_eq!(full.labels.iter().count(), 3);
    assert_eq!(&*full.controller.as_ref().unwrap().uid, "s");
    assert_eq!(full.claim_volumes.len(), 2);
    assert!(full.is_terminating() && full.is_running_and_ready());
    assert!(full.readiness.last_transition_time.is_some());
}

#[test]
fn truncated_message_decodes_only_at_a_field_boundary() {
    let message = encoded(&full());
    let raw = Envelope::read(&message).unwrap().raw;
    let end_of = |value: &[u8]| value.as_ptr_range().end.addr() - raw.as_ptr().addr();
    let ends = fields(raw, "Pod").map(|field| end_of(field.unwrap().1.bytes()));
    let boundaries: Vec<usize> = std::iter::once(0).chain(ends).collect();
    assert!(boundaries.len() > 3, "{boundaries:?}");
    let decodable = (0..=raw.len()).filter(|length| decode(&raw[..*length]).is_ok());
    assert_eq!(decodable.collect::<Vec<_>>(), boundaries);
}

#[test]
fn broken_messages_are_errors() {
    let message = encoded(&full());
    let raw = Envelope::read(&message).unwrap().raw;
    assert!(decode(&raw[..raw.len() - 1]).is_err());
    let position = raw.windows(5).position(|bytes| bytes == b"web-0").unwrap();
    let mut invalid = raw.to_vec();
    invalid[position] = 0xff;
    assert!(decode(&invalid).is_err());
}
