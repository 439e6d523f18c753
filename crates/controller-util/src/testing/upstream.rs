//! Sets used by upstream's tests of pods, sets and the controller.

use serde_json::{Map, Value, json};

use super::builders::Builder;
use crate::pod::split_name;
use crate::stateful_set::StatefulSet;

/// Namespace of objects in upstream's tests.
pub const NAMESPACE: &str = "default";

/// The set `foo`, with the uid `test` and one claim template. It has no defaults, no generation and
/// no resource version.
///
/// Upstream: `newStatefulSet`.
pub fn set(replicas: i32) -> Builder<StatefulSet> {
    Builder::from_json(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "foo", "namespace": NAMESPACE, "uid": "test"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"foo": "bar"}},
            "template": template("/tmp/zookeeper"),
            "volumeClaimTemplates": [claim_template()],
            "serviceName": "governingsvc",
            "updateStrategy": {"type": "RollingUpdate"},
            "persistentVolumeClaimRetentionPolicy":
                {"whenScaled": "Retain", "whenDeleted": "Retain"},
            "revisionHistoryLimit": 2,
        },
        "status": {"replicas": 0, "availableReplicas": 0},
    }))
}

/// A set whose selector has expressions only, one per label.
///
/// Upstream: `newStatefulSetWithLabels`.
pub fn set_with_labels(
    replicas: i32,
    name: &str,
    uid: &str,
    labels: &[(&str, &str)],
) -> Builder<StatefulSet> {
    let requirement =
        |(key, value): &(&str, &str)| json!({"key": key, "operator": "In", "values": [value]});
    let requirements: Vec<Value> = labels.iter().map(requirement).collect();
    let template_labels: Map<String, Value> = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    set(replicas)
        .uid(uid)
        .with("metadata.name", name)
        .with("spec.selector", json!({"matchExpressions": requirements}))
        .with("spec.template", template("/tmp/"))
        .without("spec.updateStrategy")
        .without("spec.revisionHistoryLimit")
        .with("spec.template.metadata.labels", template_labels)
}

fn template(data_path: &str) -> Value {
    json!({
        "metadata": {"labels": {"foo": "bar"}},
        "spec": {
            "containers": [{
                "name": "nginx", "image": "nginx", "resources": {},
                "volumeMounts": [
                    {"name": "datadir", "mountPath": data_path},
                    {"name": "home", "mountPath": "/home"},
                ],
            }],
            "volumes": [{"name": "home", "hostPath": {"path": "/tmp/home"}}],
        },
    })
}

fn claim_template() -> Value {
    json!({
        "metadata": {"name": "datadir", "namespace": NAMESPACE},
        "spec": {"resources": {"requests": {"storage": "1"}}},
    })
}

/// Name of the pod that a claim of this name belongs to, if the claim is the set's.
///
/// Upstream: `getClaimPodName`.
pub fn claim_pod_name<'a>(set: &StatefulSet, claim: &'a str) -> Option<&'a str> {
    let (before, _) = split_name(claim)?;
    let template = before.strip_suffix(set.name())?.strip_suffix('-')?;
    claim.get(template.len() + 1..)
}
