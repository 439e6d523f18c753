//! Rollouts across an upgrade of the API server from 1.36 to 1.37 and its rollback. The controller's
//! emulated version is raised after the upgrade and lowered before the rollback.

use std::time::Duration;

use integration::versions::RolledBack;
use integration::{NodeCluster, manifests};
use kube_test_control_plane::actors::PodBehaviour;
use kube_test_control_plane::audit::AuditMark;
use kube_test_control_plane::restart::Restart;
use kube_test_control_plane::route::Verb;
use kube_test_control_plane::{EmulatedVersion, ServerGates};
use serde_json::{Value, json};
use statefulset_client::feature_gates::{FeatureGates, KubeVersion};
use statefulset_client::resource::{PODS, STATEFUL_SETS};

const RECREATE: &str = "StatefulSetRecreateStrategy=true";
const NEW: &str = "registry.example/web:2";
const TICK: Duration = Duration::from_millis(200);

/// Pods whose stages last, so that changes fall between them.
fn slow_pods() -> PodBehaviour {
    const STAGE: Duration = Duration::from_secs(1);
    PodBehaviour::with_delays(STAGE)
}

/// Starts a server and a controller of 1.36.
async fn start() -> NodeCluster {
    let mut cluster = NodeCluster::start_without_controller(slow_pods()).await;
    let older = EmulatedVersion::V1_36;
    let server = cluster.plane().server();
    server.set_emulated_version(older, ServerGates::at(older));
    cluster.start_controller_with(FeatureGates::at(KubeVersion::v1(36)));
    cluster
}

async fn upgrade(cluster: &mut NodeCluster) {
    upgrade_server(cluster);
    tokio::time::sleep(TICK).await;
    raise_controller(cluster).await;
}

fn upgrade_server(cluster: &NodeCluster) {
    let newer = EmulatedVersion::V1_37;
    let gates = ServerGates::parse(RECREATE, newer).unwrap();
    let server = cluster.plane().server();
    server.set_emulated_version(newer, gates);
    server.restart(Restart::default());
}

/// Replaces the controller with one that emulates 1.37.
async fn raise_controller(cluster: &mut NodeCluster) {
    cluster.kill_controller().await;
    let gates = FeatureGates::parse(RECREATE, KubeVersion::v1(37));
    cluster.start_controller_with(gates.unwrap());
}

async fn roll_back(cluster: &mut NodeCluster) -> RolledBack {
    cluster.kill_controller().await;
    cluster.start_controller_with(FeatureGates::at(KubeVersion::v1(36)));
    tokio::time::sleep(TICK).await;
    RolledBack::from(cluster.plane().server())
}

fn set(strategy: &str, policy: &str) -> Value {
    let mut set = manifests::web(3);
    set["spec"]["podManagementPolicy"] = json!(policy);
    set["spec"]["updateStrategy"] = json!({"type": strategy});
    set
}

fn responders() -> Value {
    json!([{"name": "a.example/b", "priority": 1}])
}

async fn change_image(cluster: &NodeCluster) -> AuditMark {
    let mark = cluster.plane().server().audit().mark();
    let mut template = manifests::web(3)["spec"]["template"].take();
    template["spec"]["containers"][0]["image"] = json!(NEW);
    let patch = json!({"spec": {"template": template}});
    cluster.patch(&STATEFUL_SETS, "web", &patch).await;
    mark
}

/// Waits until `count` pods of the old image are gone.
async fn until_gone(cluster: &NodeCluster, count: usize) {
    let is_old = |pod: &Value| pod["spec"]["containers"][0]["image"] != NEW;
    for _ in 0..600 {
        let pods = cluster.list(&PODS).await;
        if pods.iter().filter(|pod| is_old(pod)).count() <= 3 - count {
            return;
        }
        tokio::time::sleep(TICK).await;
    }
    panic!("the rollout does not advance");
}

/// Checks that the rollout is complete, replaced each pod once and added one revision.
async fn assert_replaced_once(cluster: &NodeCluster, begin: AuditMark, case: &str) {
    tokio::time::sleep(Duration::from_secs(300)).await;
    let audit = cluster.plane().server().audit();
    let created = audit.since(begin, |entry| {
        entry.verb == Verb::Create && entry.resource == "pods" && entry.subresource.is_empty()
    });
    let mut created: Vec<String> = created.unwrap().into_iter().map(|it| it.name).collect();
    created.sort();
    let names = ["web-0", "web-1", "web-2"];
    assert_eq!(created, names, "{case}");
    let revisions = cluster.revisions().await;
    assert_eq!(revisions.len(), 2, "{case}");
    let update = &revisions[1]["metadata"]["name"];
    for pod in cluster.list(&PODS).await {
        let label = &pod["metadata"]["labels"]["controller-revision-hash"];
        assert_eq!(label, update, "{case}");
        assert_eq!(pod["status"]["phase"], "Running", "{case}");
    }
}

async fn assert_no_condition(cluster: &NodeCluster, case: &str) {
    let status = cluster.status("web").await;
    assert!(status.get("conditions").is_none(), "{case}: {status}");
}

#[tokio::test(start_paused = true)]
async fn rolling_update_replaces_no_pod_twice() {
    integration::embedded_only!("changes the version of the server");
    for policy in ["OrderedReady", "Parallel"] {
        let mut cluster = start().await;
        cluster
            .create(&STATEFUL_SETS, &set("RollingUpdate", policy))
            .await;
        cluster.settle().await;
        let begin = change_image(&cluster).await;
        until_gone(&cluster, 1).await;
        upgrade(&mut cluster).await;
        until_gone(&cluster, 2).await;
        let _hidden = roll_back(&mut cluster).await;
        assert_replaced_once(&cluster, begin, policy).await;
        assert_no_condition(&cluster, policy).await;
    }
}

#[tokio::test(start_paused = true)]
async fn on_delete_replaces_no_pod_twice() {
    integration::embedded_only!("changes the version of the server");
    for policy in ["OrderedReady", "Parallel"] {
        let mut cluster = start().await;
        cluster
            .create(&STATEFUL_SETS, &set("OnDelete", policy))
            .await;
        cluster.settle().await;
        let begin = change_image(&cluster).await;
        let delete = async |cluster: &NodeCluster, pod: &str| {
            cluster.delete(&PODS, pod, &json!({})).await;
        };
        delete(&cluster, "web-2").await;
        upgrade(&mut cluster).await;
        until_gone(&cluster, 1).await;
        delete(&cluster, "web-0").await;
        let hidden = roll_back(&mut cluster).await;
        until_gone(&cluster, 2).await;
        delete(&cluster, "web-1").await;
        let _ = hidden.upgrade(cluster.plane().server());
        assert_replaced_once(&cluster, begin, policy).await;
        assert_no_condition(&cluster, policy).await;
    }
}

/// A set of type `Recreate` exists only on a newer server, so this rollout begins there.
#[tokio::test(start_paused = true)]
async fn recreate_replaces_no_pod_twice() {
    integration::embedded_only!("changes the version of the server");
    for policy in ["OrderedReady", "Parallel"] {
        for gone in 0..=1 {
            let case = format!("{policy} {gone}");
            let mut cluster = start().await;
            upgrade(&mut cluster).await;
            cluster
                .create(&STATEFUL_SETS, &set("Recreate", policy))
                .await;
            cluster.settle().await;
            let begin = change_image(&cluster).await;
            tokio::time::sleep(TICK).await;
            until_gone(&cluster, 3 * gone).await;
            let progress = cluster.status("web").await;
            let reason = &progress["conditions"][0]["reason"];
            assert_eq!(reason, "RecreateInProgress", "{case}");
            let _hidden = roll_back(&mut cluster).await;
            assert_replaced_once(&cluster, begin, &case).await;
            assert_no_condition(&cluster, &case).await;
        }
    }
}

/// The user's change of a field that only 1.37 knows waits for that version, as with upstream.
#[tokio::test(start_paused = true)]
async fn newer_member_rolls_only_in_its_version() {
    integration::embedded_only!("changes the version of the server");
    let mut cluster = start().await;
    let set = set("RollingUpdate", "Parallel");
    cluster.create(&STATEFUL_SETS, &set).await;
    upgrade_server(&cluster);
    cluster.settle().await;
    let pods = cluster.pod_uids().await;
    let patch = json!({"spec": {"template": {"spec": {"evictionResponders": responders()}}}});
    cluster.patch(&STATEFUL_SETS, "web", &patch).await;
    cluster.settle().await;
    assert_eq!(cluster.pod_uids().await, pods);

    raise_controller(&mut cluster).await;
    cluster.settle().await;
    let rolled = cluster.pod_uids().await;
    assert!(pods.iter().all(|pod| !rolled.contains(pod)));
    for pod in cluster.list(&PODS).await {
        assert_eq!(pod["spec"]["evictionResponders"], responders());
    }
    assert_eq!(cluster.revisions().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn loss_of_a_newer_member_restarts_nothing() {
    integration::embedded_only!("changes the version of the server");
    let mut cluster = start().await;
    upgrade(&mut cluster).await;
    let mut set = set("RollingUpdate", "Parallel");
    set["spec"]["template"]["spec"]["evictionResponders"] = responders();
    cluster.create(&STATEFUL_SETS, &set).await;
    cluster.settle().await;
    let pods = cluster.pod_uids().await;

    let hidden = roll_back(&mut cluster).await;
    assert_eq!(hidden.count(), 4, "the set and its pods");
    cluster.settle().await;
    assert_eq!(cluster.pod_uids().await, pods);
    assert_eq!(hidden.upgrade(cluster.plane().server()), 4);
    raise_controller(&mut cluster).await;
    cluster.settle().await;
    assert_eq!(cluster.pod_uids().await, pods);
    assert_eq!(cluster.revisions().await.len(), 1);
}
