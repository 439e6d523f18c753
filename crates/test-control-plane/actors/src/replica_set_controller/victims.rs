//! The choice of the pods that a replica set deletes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use kube_test_control_plane_api::members::{list_at, number_at, text_at};
use kube_test_control_plane_api::object::Object;
use serde_json::Value;

use super::status::readiness;

/// The annotation with the cost of a pod's deletion.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The rank of a pod; the lowest is deleted first: without a node, pending, not ready, of low cost,
/// on a node with many pods of the set, ready for a short time, often restarted, young.
type Rank = (
    bool,
    u8,
    bool,
    i32,
    Reverse<usize>,
    Reverse<String>,
    Reverse<i64>,
    Reverse<String>,
    String,
);

/// Returns the pods to delete.
///
/// Upstream: `ActivePodsWithRanks`, without the logarithmic classes of ages.
pub(super) fn choose(mut pods: Vec<(Arc<Object>, Value)>, count: usize) -> Vec<Arc<Object>> {
    if count == 0 {
        return Vec::new();
    }
    if count < pods.len() {
        let mut on_node: BTreeMap<String, usize> = BTreeMap::new();
        for (_, pod) in &pods {
            *on_node.entry(node(pod).to_owned()).or_default() += 1;
        }
        pods.sort_by_cached_key(|(_, pod)| rank(pod, &on_node));
    }
    pods.into_iter().take(count).map(|(pod, _)| pod).collect()
}

fn rank(pod: &Value, on_node: &BTreeMap<String, usize>) -> Rank {
    let phase = match text_at(pod, "/status/phase") {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let readiness = readiness(pod);
    let since = readiness.last_transition_time.map(|time| time.to_string());
    let annotations = pod.pointer("/metadata/annotations");
    let cost = annotations.and_then(|it| it.get(DELETION_COST)?.as_str()?.parse().ok());
    let restarts =
        list_at(pod, "/status/containerStatuses").map(|it| number_at(it, "/restartCount"));
    (
        !node(pod).is_empty(),
        phase,
        readiness.ready,
        cost.unwrap_or_default(),
        Reverse(on_node.get(node(pod)).copied().unwrap_or_default()),
        Reverse(since.unwrap_or_default()),
        Reverse(restarts.max().unwrap_or_default()),
        Reverse(text_at(pod, "/metadata/creationTimestamp").to_owned()),
        text_at(pod, "/metadata/name").to_owned(),
    )
}

fn node(pod: &Value) -> &str {
    text_at(pod, "/spec/nodeName")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn least_useful_pod_ranks_lowest() {
        let ready = json!([{
            "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        let later = json!([{
            "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:09Z",
        }]);
        let cheap = json!({"annotations": {DELETION_COST: "-5"}});
        let running = |node: &str, conditions: &Value| {
            json!({
                "metadata": {},
                "spec": {"nodeName": node},
                "status": {"phase": "Running", "conditions": conditions},
            })
        };
        let mut pods = [
            json!({"spec": {}, "status": {"phase": "Pending"}}),
            json!({"spec": {"nodeName": "a"}, "status": {"phase": "Pending"}}),
            running("a", &json!([])),
            running("b", &ready),
            running("a", &later),
            running("a", &ready),
            running("c", &ready),
        ];
        pods[3]["metadata"] = cheap;
        let on_node = BTreeMap::from([("a".to_owned(), 4), ("b".to_owned(), 1)]);
        let ranks: Vec<Rank> = pods.iter().map(|pod| rank(pod, &on_node)).collect();
        assert!(ranks.is_sorted(), "{ranks:?}");
    }
}
