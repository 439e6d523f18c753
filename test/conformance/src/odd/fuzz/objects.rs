//! Ordinary objects that the odd ones are derived from.

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::tree::Tree;

/// Namespace of the odd objects and of one ordinary set.
pub(super) const NAMESPACE: &str = "fuzz";

const SET_UID: &str = "00000000-0000-4000-8000-000000000001";

/// A set, its first pod, a pod beyond its replicas, their claims and a revision.
pub(super) fn family() -> Vec<Tree> {
    let values = [set(), revision(), pod(0), pod(2), claim(0), claim(2)];
    values.map(Tree::from).into()
}

/// A random object; sets and revisions are more frequent.
pub(super) fn any(rng: &mut StdRng) -> Tree {
    let mut family = family();
    let index = rng.random_range(0..family.len() * 2) % (family.len() + 2);
    family.swap_remove(index % family.len())
}

fn metadata(name: &str, uid: u32) -> Value {
    json!({
        "name": name, "namespace": NAMESPACE, "resourceVersion": "1", "generation": 1,
        "uid": format!("00000000-0000-4000-8000-{uid:012}"),
        "creationTimestamp": "2026-11-22T11:00:00Z",
        "labels": {"app": "odd"}, "annotations": {"note": "n"},
        "managedFields": [{
            "manager": "m", "operation": "Update", "apiVersion": "v1",
            "time": "2026-11-22T11:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}},
        }],
    })
}

fn owned(name: &str, uid: u32) -> Value {
    let mut metadata = metadata(name, uid);
    metadata["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "odd", "uid": SET_UID,
        "controller": true, "blockOwnerDeletion": true,
    }]);
    metadata
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "odd"}, "annotations": {"a": "b"}},
        "spec": {
            "containers": [{
                "name": "c", "image": "i", "env": [{"name": "A", "value": "b"}],
                "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "terminationGracePeriodSeconds": 30,
        },
    })
}

fn claim_template() -> Value {
    json!({
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    })
}

fn set() -> Value {
    json!({
        "kind": "StatefulSet", "apiVersion": "apps/v1", "metadata": metadata("odd", 1),
        "spec": {
            "replicas": 2, "serviceName": "odd", "podManagementPolicy": "OrderedReady",
            "selector": {
                "matchLabels": {"app": "odd"},
                "matchExpressions": [{"key": "app", "operator": "In", "values": ["odd"]}],
            },
            "template": template(),
            "volumeClaimTemplates": [claim_template()],
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"partition": 0, "maxUnavailable": "50%"},
            },
            "revisionHistoryLimit": 2, "minReadySeconds": 1, "ordinals": {"start": 0},
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
        },
        "status": {
            "replicas": 1, "readyReplicas": 0, "currentReplicas": 1, "updatedReplicas": 1,
            "availableReplicas": 0, "observedGeneration": 1, "collisionCount": 0,
            "currentRevision": "odd-1", "updateRevision": "odd-1",
            "conditions": [{"type": "T", "status": "True", "lastTransitionTime": null}],
        },
    })
}

fn pod(ordinal: u32) -> Value {
    let name = format!("odd-{ordinal}");
    let mut metadata = owned(&name, 10 + ordinal);
    metadata["labels"] = json!({
        "app": "odd", "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": ordinal.to_string(), "controller-revision-hash": "odd-1",
    });
    json!({
        "kind": "Pod", "apiVersion": "v1", "metadata": metadata,
        "spec": {
            "hostname": name, "subdomain": "odd",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": format!("data-{name}")}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{
                "type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T11:30:00Z",
            }],
        },
    })
}

fn claim(ordinal: u32) -> Value {
    let name = format!("data-odd-{ordinal}");
    json!({
        "kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": owned(&name, 20 + ordinal),
        "spec": claim_template()["spec"], "status": {"phase": "Bound"},
    })
}

fn revision() -> Value {
    json!({
        "kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": owned("odd-1", 4),
        "data": {"spec": {"template": template()}}, "revision": 1,
    })
}
