//! End state of a run, without details that differ between runs.

use std::collections::BTreeSet;

use integration::NodeCluster;
use integration::stateful_sets::{name, uid};
use serde_json::{Value, json};
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS};

/// The set's status, the pods with their revisions, the claims with their owners, and the
/// revisions.
pub(crate) async fn end_state(cluster: &NodeCluster) -> String {
    let set = cluster.get(&STATEFUL_SETS, "web").await;
    let set = set.expect("the set exists");
    let pods = cluster.list(&PODS).await;
    let claims = cluster.list(&PERSISTENT_VOLUME_CLAIMS).await;
    let revisions = cluster.revisions().await;
    let objects = pods.iter().chain(&claims).chain(&revisions).chain([&set]);
    let uids: BTreeSet<&str> = objects.map(uid).collect();
    let owners = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        let owner = |owner: &Value| {
            let is_there = uids.contains(owner["uid"].as_str().unwrap_or_default());
            json!([owner["kind"], owner["name"], owner["controller"], is_there])
        };
        let owners = owners.into_iter().flatten().map(owner);
        Value::Array(owners.collect())
    };
    let pod = |pod: &Value| {
        let labels = &pod["metadata"]["labels"];
        let spec = &pod["spec"];
        json!([
            name(pod),
            labels,
            spec["containers"],
            spec["volumes"],
            owners(pod)
        ])
    };
    let claim = |claim: &Value| json!([name(claim), claim["spec"]["resources"], owners(claim)]);
    let revision = |revision: &Value| {
        let (number, data) = (&revision["revision"], &revision["data"]);
        json!([name(revision), number, data, owners(revision)])
    };
    let end = json!({
        "status": set["status"],
        "pods": pods.iter().map(pod).collect::<Vec<_>>(),
        "claims": claims.iter().map(claim).collect::<Vec<_>>(),
        "revisions": revisions.iter().map(revision).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&end).unwrap()
}
