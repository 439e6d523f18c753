//! Members that no compiled type knows, as a newer API server has them: they survive every write,
//! and restart nothing by their mere appearance.

use std::time::Duration;

use integration::{Cluster, manifests};
use kube_test_control_plane::actors::PodBehaviour;
use kube_test_control_plane::audit::AuditEntry;
use serde_json::{Value, json};
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS,
};

const UNKNOWN: &str = "madeUpIn2030";

fn set_with_unknown_members() -> Value {
    let mut set = manifests::web(2);
    let template = &mut set["spec"]["template"]["spec"];
    template[UNKNOWN] = json!({"deep": [1, {"x": "<y>"}]});
    template["containers"][0][UNKNOWN] = json!("in a container");
    set["spec"]["volumeClaimTemplates"][0]["spec"][UNKNOWN] = json!({"tier": "gold"});
    set
}

fn assert_in_pod(pod: &Value) {
    assert_eq!(
        pod["spec"][UNKNOWN],
        json!({"deep": [1, {"x": "<y>"}]}),
        "{pod}"
    );
    assert_eq!(
        pod["spec"]["containers"][0][UNKNOWN], "in a container",
        "{pod}"
    );
}

/// Edits the stored set as a server upgrade would: without a change of its generation.
async fn edit_template(cluster: &Cluster, edit: impl Fn(&mut Value)) {
    let mut set = cluster
        .get(&STATEFUL_SETS, "web")
        .await
        .expect("the set exists");
    edit(&mut set["spec"]["template"]["spec"]);
    cluster
        .patch(
            &STATEFUL_SETS,
            "web",
            &json!({"spec": {"template": set["spec"]["template"]}}),
        )
        .await;
}

/// Waits, and returns the writes of the controller other than statuses.
async fn controller_writes(cluster: &Cluster) -> Vec<String> {
    cluster.plane().server().audit().clear();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let writes = cluster.writes();
    let ours = writes
        .iter()
        .filter(|entry| !entry.user_agent.starts_with("test-control-plane/"));
    ours.filter(|entry| entry.subresource != "status")
        .map(AuditEntry::summary)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn they_are_in_pods_claims_and_revision_data_and_survive_later_writes() {
    let cluster = Cluster::start_newer(PodBehaviour::default()).await;
    let mut set = set_with_unknown_members();
    set["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenScaled": "Delete", "whenDeleted": "Delete"});
    cluster.create(&STATEFUL_SETS, &set).await;
    cluster.settle().await;
    for pod in cluster.list(&PODS).await {
        assert_in_pod(&pod);
    }
    let revisions = cluster.revisions().await;
    let recorded = &revisions[0]["data"]["spec"]["template"]["spec"];
    assert_eq!(recorded[UNKNOWN]["deep"][1]["x"], "<y>");
    assert_eq!(recorded["containers"][0][UNKNOWN], "in a container");

    // The claims were written again to give them their owner; a pod is repaired.
    for claim in cluster.list(&PERSISTENT_VOLUME_CLAIMS).await {
        assert_eq!(claim["spec"][UNKNOWN]["tier"], "gold", "{claim}");
        assert_eq!(
            claim["metadata"]["ownerReferences"][0]["kind"],
            "StatefulSet"
        );
    }
    let label = json!({"metadata": {"labels": {"statefulset.kubernetes.io/pod-name": "wrong"}}});
    cluster.patch(&PODS, "web-0", &label).await;
    cluster.settle().await;
    let pod = cluster.get(&PODS, "web-0").await.unwrap();
    assert_eq!(
        pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"],
        "web-0"
    );
    assert_in_pod(&pod);
}

#[tokio::test(start_paused = true)]
async fn their_appearance_on_a_settled_set_makes_no_write() {
    let cluster = Cluster::start_newer(PodBehaviour::default()).await;
    cluster.create(&STATEFUL_SETS, &manifests::web(2)).await;
    cluster.settle().await;
    edit_template(&cluster, |template| {
        template[UNKNOWN] = json!("a server default");
    })
    .await;
    assert_eq!(controller_writes(&cluster).await, Vec::<String>::new());
    assert_eq!(cluster.revisions().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_latest_revision_that_lacks_them_restarts_nothing() {
    let mut cluster = Cluster::start_newer(PodBehaviour::default()).await;
    cluster.create(&STATEFUL_SETS, &manifests::web(2)).await;
    cluster.settle().await;
    cluster.stop_controller().await;
    edit_template(&cluster, |template| {
        template["containers"][0][UNKNOWN] = json!(1);
    })
    .await;
    let pods = cluster.pod_uids().await;
    cluster.start_controller();
    assert_eq!(controller_writes(&cluster).await, Vec::<String>::new());
    assert_eq!(cluster.pod_uids().await, pods);
}

#[tokio::test(start_paused = true)]
async fn changing_one_that_the_latest_revision_records_makes_a_revision() {
    let cluster = Cluster::start_newer(PodBehaviour::default()).await;
    cluster
        .create(&STATEFUL_SETS, &set_with_unknown_members())
        .await;
    cluster.settle().await;
    let pods = cluster.pod_uids().await;
    edit_template(&cluster, |template| template[UNKNOWN] = json!("changed")).await;
    cluster.settle().await;
    let revisions = cluster.revisions().await;
    assert_eq!(revisions.len(), 2);
    assert_eq!(
        revisions[1]["data"]["spec"]["template"]["spec"][UNKNOWN],
        "changed"
    );
    assert!(
        cluster
            .pod_uids()
            .await
            .iter()
            .all(|pod| !pods.contains(pod)),
        "all pods rolled"
    );
    assert_eq!(cluster.list(&CONTROLLER_REVISIONS).await.len(), 2);
}
