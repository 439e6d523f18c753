//! Tests of fields unknown to the compiled types, from a newer API server: they survive every
//! write, and their appearance alone restarts nothing.

use std::time::Duration;

use integration::versions::RolledBack;
use integration::{NodeCluster, manifests};
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

/// Patches the template through the API, which increments the generation.
async fn edit_template(cluster: &NodeCluster, edit: impl Fn(&mut Value)) {
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

/// Waits, and returns the controller's writes other than statuses.
async fn controller_writes(cluster: &NodeCluster) -> Vec<String> {
    cluster.plane().server().audit().clear();
    tokio::time::sleep(Duration::from_secs(120)).await;
    writes_by_controller(cluster, |entry| entry.subresource != "status")
}

/// Waits, and returns all writes of the controller.
async fn controller_writes_and_statuses(cluster: &NodeCluster) -> Vec<String> {
    cluster.plane().server().audit().clear();
    tokio::time::sleep(Duration::from_secs(120)).await;
    writes_by_controller(cluster, |_| true)
}

fn writes_by_controller(
    cluster: &NodeCluster,
    counts: impl Fn(&AuditEntry) -> bool,
) -> Vec<String> {
    let is_by_controller =
        |entry: &&AuditEntry| !entry.user_agent.starts_with("test-control-plane/");
    cluster
        .writes()
        .iter()
        .filter(is_by_controller)
        .filter(|entry| counts(entry))
        .map(AuditEntry::summary)
        .collect()
}

/// A cluster with two settled sets, one of them with parallel pod management. Their templates and
/// claims have fields known only to a newer server.
async fn settled_on_a_newer_server() -> NodeCluster {
    let cluster = NodeCluster::start_newer(PodBehaviour::default()).await;
    for (name, policy) in [("web", "OrderedReady"), ("db", "Parallel")] {
        let mut set = set_with_unknown_members();
        set["metadata"]["name"] = json!(name);
        set["spec"]["podManagementPolicy"] = json!(policy);
        set["spec"]["persistentVolumeClaimRetentionPolicy"] =
            json!({"whenScaled": "Delete", "whenDeleted": "Delete"});
        for labels in [
            "/spec/selector/matchLabels",
            "/spec/template/metadata/labels",
        ] {
            *set.pointer_mut(labels).expect("the set has labels") = json!({"app": name});
        }
        cluster.create(&STATEFUL_SETS, &set).await;
    }
    cluster.settle().await;
    assert_eq!(cluster.pod_names().await.len(), 4);
    cluster
}

#[tokio::test(start_paused = true)]
async fn unknown_members_survive_all_writes() {
    integration::embedded_only!("needs a server that keeps unknown members");
    let cluster = NodeCluster::start_newer(PodBehaviour::default()).await;
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

    // The claims were rewritten to add their owner; a pod is repaired next.
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
async fn unknown_members_on_a_settled_set_write_only_the_status() {
    integration::embedded_only!("needs a server that keeps unknown members");
    let cluster = NodeCluster::start_newer(PodBehaviour::default()).await;
    cluster.create(&STATEFUL_SETS, &manifests::web(2)).await;
    cluster.settle().await;
    edit_template(&cluster, |template| {
        template[UNKNOWN] = json!("a server default");
    })
    .await;
    assert_eq!(controller_writes(&cluster).await, Vec::<String>::new());
    let set = cluster.get(&STATEFUL_SETS, "web").await.unwrap();
    assert_eq!(set["metadata"]["generation"], 2);
    assert_eq!(set["status"]["observedGeneration"], 2);
    assert_eq!(cluster.revisions().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn revision_without_unknown_members_restarts_nothing() {
    integration::embedded_only!("needs a server that keeps unknown members");
    let mut cluster = NodeCluster::start_newer(PodBehaviour::default()).await;
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
async fn changed_recorded_unknown_member_creates_a_revision() {
    integration::embedded_only!("needs a server that keeps unknown members");
    let cluster = NodeCluster::start_newer(PodBehaviour::default()).await;
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

/// Stores the set as a server that knows the field would after a user's change of it:
/// kubernetes/enhancements#6277 plans it for 1.38. This server would reject the change.
async fn store_scheduling(cluster: &NodeCluster, min_count: Option<u32>) -> Value {
    let mut set = cluster
        .get(&STATEFUL_SETS, "web")
        .await
        .expect("the set exists");
    let generation = set["metadata"]["generation"].as_i64().expect("a number");
    set["metadata"]["generation"] = json!(generation + 1);
    let spec = set["spec"].as_object_mut().expect("the set has a spec");
    spec.remove("scheduling");
    if let Some(count) = min_count {
        let gang = json!({"schedulingPolicy": {"gang": {"minCount": count}}});
        spec.insert("scheduling".to_owned(), gang);
    }
    cluster.plane().store_raw(&set).expect("the set is valid");
    set
}

#[tokio::test(start_paused = true)]
async fn scheduling_of_a_set_survives_and_restarts_nothing() {
    integration::embedded_only!("needs a server that keeps unknown members");
    let cluster = NodeCluster::start_newer(PodBehaviour::default()).await;
    cluster.create(&STATEFUL_SETS, &manifests::web(2)).await;
    cluster.settle().await;
    let (pods, revisions) = (cluster.pod_uids().await, cluster.revisions().await);
    for min_count in [Some(2), Some(1), None, Some(2)] {
        let stored = store_scheduling(&cluster, min_count).await;
        assert_eq!(controller_writes(&cluster).await, Vec::<String>::new());
        let set = cluster.get(&STATEFUL_SETS, "web").await.unwrap();
        assert_eq!(set["spec"], stored["spec"]);
        let generation = &stored["metadata"]["generation"];
        assert_eq!(&set["status"]["observedGeneration"], generation);
        assert_eq!(cluster.pod_uids().await, pods);
        assert_eq!(cluster.revisions().await, revisions);
    }

    // The writes of a rollout keep it in the set, and no revision or pod gets it.
    cluster.plane().server().audit().clear();
    edit_template(&cluster, |template| {
        template["containers"][0]["image"] = json!("registry.example/web:2");
    })
    .await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let kept = json!({"schedulingPolicy": {"gang": {"minCount": 2}}});
    let set = cluster.get(&STATEFUL_SETS, "web").await.unwrap();
    assert_eq!(set["spec"]["scheduling"], kept);
    let is_status =
        |entry: &AuditEntry| entry.resource == "statefulsets" && entry.subresource == "status";
    let writes = cluster.writes();
    let statuses: Vec<&AuditEntry> = writes.iter().filter(|entry| is_status(entry)).collect();
    assert!(!statuses.is_empty(), "the rollout changes the status");
    for status in statuses {
        let body: Value = serde_json::from_slice(&status.body).unwrap();
        assert_eq!(body["spec"]["scheduling"], kept);
    }
    let revisions = cluster.revisions().await;
    assert_eq!(revisions.len(), 2);
    for object in [revisions, cluster.list(&PODS).await].concat() {
        for member in ["spec", "data"] {
            let text = object[member].to_string();
            assert!(!text.contains(r#""scheduling""#), "{object}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn server_rollback_and_upgrade_cause_no_write() {
    integration::embedded_only!("needs a server that keeps unknown members");
    let mut cluster = settled_on_a_newer_server().await;
    let (pods, revisions) = (cluster.pod_uids().await, cluster.revisions().await);
    for is_controller_new in [false, true] {
        let rolled_back = RolledBack::from(cluster.plane().server());
        assert_eq!(rolled_back.count(), 10, "sets, pods and claims");
        let set = cluster.get(&STATEFUL_SETS, "web").await.unwrap();
        assert!(!set["spec"].to_string().contains(UNKNOWN));
        if is_controller_new {
            cluster.kill_controller().await;
            cluster.start_controller();
        }
        let none = Vec::<String>::new();
        assert_eq!(controller_writes_and_statuses(&cluster).await, none);

        let restored = rolled_back.upgrade(cluster.plane().server());
        assert_eq!(restored, 10, "none of them was written");
        assert_eq!(controller_writes_and_statuses(&cluster).await, none);
        assert_eq!(cluster.pod_uids().await, pods);
        assert_eq!(cluster.revisions().await, revisions);
    }
}

#[tokio::test(start_paused = true)]
async fn scaling_on_a_rolled_back_server_restarts_nothing() {
    integration::embedded_only!("needs a server that keeps unknown members");
    let cluster = settled_on_a_newer_server().await;
    let (pods, revisions) = (cluster.pod_uids().await, cluster.revisions().await);
    let scale = async |replicas: usize| {
        for set in ["db", "web"] {
            let spec = json!({"spec": {"replicas": replicas}});
            cluster.patch(&STATEFUL_SETS, set, &spec).await;
        }
        cluster.settle().await;
        let now = cluster.pod_uids().await;
        assert_eq!(now.len(), 2 * replicas);
        let stay = pods.iter().filter(|pod| now.contains(pod)).count();
        assert_eq!(stay, 4, "no pod was replaced");
        assert_eq!(cluster.revisions().await, revisions);
    };
    let rolled_back = RolledBack::from(cluster.plane().server());
    scale(3).await;
    let restored = rolled_back.upgrade(cluster.plane().server());
    assert_eq!(restored, 8, "the sets were written, their fields are lost");
    scale(4).await;
    let none = Vec::<String>::new();
    assert_eq!(controller_writes_and_statuses(&cluster).await, none);

    // The field returns as the newer server's default, with the same value or another.
    edit_template(&cluster, |template| {
        template["containers"][0][UNKNOWN] = json!("in a container");
    })
    .await;
    assert_eq!(controller_writes(&cluster).await, none);
    edit_template(&cluster, |template| {
        template["containers"][0][UNKNOWN] = json!("another");
    })
    .await;
    cluster.settle().await;
    assert_eq!(cluster.revisions().await.len(), 3, "the value has changed");
}
