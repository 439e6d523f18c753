//! Stuck situations: `why` names the cause, and the commands that it prints complete the set.

use kube_test_control_plane::store::Key;
use serde_json::{Value, json};

use crate::kubectl::kubectl;
use crate::stage::{SET, SETS, Stage, behave, complete, resolve, web, why};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A cluster with this set and time to get stuck.
async fn with(set: &Value) -> Stage {
    let stage = Stage::start().await;
    stage.create(SETS, set).await;
    stage.pass(300).await;
    stage
}

fn key(storage: &'static str, name: &str) -> Key {
    Key::of(storage, "default", name)
}

#[tokio::test(start_paused = true)]
async fn broken_first_revision_blocks_its_successor() {
    let mut set = web(3);
    let annotation = json!({"kubelet.test-control-plane/crash": "{}"});
    set["spec"]["template"]["metadata"]["annotations"] = annotation;
    let stage = with(&set).await;
    assert_eq!(why(&stage).await["cause"], "crash-loop");
    behave(&stage, "crash", Value::Null).await;
    resolve(&stage, "old-revision-blocks", "exit code 1").await;
}

#[tokio::test(start_paused = true)]
async fn rollback_does_not_begin_while_the_bad_pod_exists() {
    let stage = complete().await;
    behave(&stage, "image-pull-failure", json!("{}")).await;
    behave(&stage, "image-pull-failure", Value::Null).await;
    resolve(
        &stage,
        "old-revision-blocks",
        "kubectl -n default delete pod web-2",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn image_that_cannot_be_pulled_is_undone() {
    let stage = complete().await;
    behave(&stage, "image-pull-failure", json!("{}")).await;
    resolve(&stage, "image-pull", "ImagePullBackOff").await;
}

#[tokio::test(start_paused = true)]
async fn crash_loop_is_undone() {
    let stage = complete().await;
    behave(&stage, "crash", json!("{exitCode: 3}")).await;
    resolve(&stage, "crash-loop", "exit code 3").await;
}

#[tokio::test(start_paused = true)]
async fn pod_that_never_becomes_ready_is_undone() {
    let stage = complete().await;
    behave(&stage, "outcome", json!("never-ready")).await;
    resolve(&stage, "never-ready", "rollout undo").await;
}

#[tokio::test(start_paused = true)]
async fn unready_pod_of_the_only_revision_is_replaced() {
    let stage = complete().await;
    stage
        .plane
        .pods()
        .set_ready("default", "web-0", false)
        .await;
    stage.patch(SET, &json!({"spec": {"replicas": 1}})).await;
    stage.pass(300).await;
    resolve(&stage, "never-ready", "kubectl logs web-0").await;
}

#[tokio::test(start_paused = true)]
async fn on_delete_names_the_pods_to_delete() {
    let stage = complete().await;
    stage
        .patch(
            SET,
            &json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}),
        )
        .await;
    stage.set_image("app:2").await;
    stage.pass(60).await;
    resolve(&stage, "on-delete", "delete pod web-0 web-1 web-2").await;
}

#[tokio::test(start_paused = true)]
async fn partition_beyond_replicas_stops_every_update() {
    let stage = complete().await;
    stage
        .patch(
            SET,
            &json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 5}}}}),
        )
        .await;
    stage.set_image("app:2").await;
    stage.pass(60).await;
    resolve(&stage, "partition-beyond-replicas", "partition 5").await;
}

#[tokio::test(start_paused = true)]
async fn partition_keeps_lower_pods() {
    let stage = complete().await;
    stage
        .patch(
            SET,
            &json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}}),
        )
        .await;
    stage.set_image("app:2").await;
    stage.pass(60).await;
    resolve(&stage, "partition", "web-0, web-1").await;
}

#[tokio::test(start_paused = true)]
async fn quota_is_raised_for_all_missing_pods() {
    let stage = Stage::start().await;
    let quota = json!({"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}});
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    stage.create(quotas, &quota).await;
    let server = stage.plane.service();
    stage.deny_pods(move || {
        let store = server.store();
        let count = store.list("pods", "default").1.len();
        let quota = store.get(&key("resourcequotas", "small"))?.value();
        let limit = quota["spec"]["hard"]["pods"].as_str()?.to_owned();
        (count >= limit.parse().ok()?).then(|| {
            format!(
                "exceeded quota: small, requested: pods=1, used: pods={count}, limited: pods={limit}"
            )
        })
    });
    stage.create(SETS, &web(3)).await;
    stage.pass(300).await;
    resolve(&stage, "quota", "exceeded quota: small").await;
}

#[tokio::test(start_paused = true)]
async fn missing_service_account_is_created() {
    let stage = Stage::start().await;
    let server = stage.plane.service();
    stage.deny_pods(move || {
        let account = server.store().get(&key("serviceaccounts", "runner"));
        account.is_none().then(|| {
            "error looking up service account default/runner: serviceaccount \"runner\" not found"
                .to_owned()
        })
    });
    stage.create(SETS, &web(2)).await;
    stage.pass(300).await;
    resolve(
        &stage,
        "service-account-missing",
        "create serviceaccount runner",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn foreign_pod_with_a_wanted_name_is_deleted() {
    let stage = Stage::start().await;
    let containers = json!([{"name": "app", "image": "other:1"}]);
    let pod = json!({"metadata": {"name": "web-1"}, "spec": {"containers": containers}});
    stage.create(PODS, &pod).await;
    stage.create(SETS, &web(3)).await;
    stage.pass(300).await;
    resolve(&stage, "name-taken", "no controller").await;
}

#[tokio::test(start_paused = true)]
async fn cordoned_nodes_are_uncordoned() {
    let stage = Stage::start().await;
    for node in ["node-0", "node-1", "node-2"] {
        stage
            .plane
            .nodes()
            .cordon(node)
            .await
            .expect("the node exists");
    }
    stage.create(SETS, &web(2)).await;
    stage.pass(300).await;
    resolve(
        &stage,
        "nodes-cordoned",
        "kubectl uncordon node-0 node-1 node-2",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn tainted_nodes_are_untainted() {
    let stage = Stage::start().await;
    for node in ["node-0", "node-1", "node-2"] {
        let nodes = stage.plane.nodes();
        let tainted = nodes.taint(node, "dedicated", "ml", "NoSchedule").await;
        tainted.expect("the node exists");
    }
    stage.create(SETS, &web(2)).await;
    stage.pass(300).await;
    resolve(&stage, "nodes-tainted", "dedicated").await;
}

#[tokio::test(start_paused = true)]
async fn node_gets_the_selected_labels() {
    let mut set = web(2);
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "fast"});
    let stage = with(&set).await;
    resolve(&stage, "no-node-with-labels", "disk=fast").await;
}

#[tokio::test(start_paused = true)]
async fn set_is_scaled_to_the_room() {
    let mut set = web(4);
    let requests = json!({"requests": {"cpu": "40"}});
    set["spec"]["template"]["spec"]["containers"][0]["resources"] = requests;
    let stage = with(&set).await;
    resolve(&stage, "no-room", "Insufficient cpu").await;
}

#[tokio::test(start_paused = true)]
async fn scale_down_that_removes_data_or_running_pods_is_not_offered() {
    let mut set = web(4);
    let requests = json!({"requests": {"cpu": "40"}});
    set["spec"]["template"]["spec"]["containers"][0]["resources"] = requests;
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenScaled": "Delete"});
    let stage = with(&set).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "no-room", "{answer:#}");
    assert_eq!(answer["resolve"], json!([]), "{answer:#}");

    let mut set = web(3);
    let requests = json!({"requests": {"cpu": "40"}});
    set["spec"]["template"]["spec"]["containers"][0]["resources"] = requests;
    let stage = with(&set).await;
    let mut other = json!({"metadata": {"name": "other"}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}});
    other["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "40"}});
    stage.create(PODS, &other).await;
    kubectl(&stage, "kubectl -n default delete pod web-0").await;
    stage.pass(300).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "no-room", "{answer:#}");
    assert_eq!(answer["resolve"], json!([]), "{answer:#}");
}

#[tokio::test(start_paused = true)]
async fn scheduling_gates_are_removed() {
    let mut set = web(2);
    set["spec"]["template"]["spec"]["schedulingGates"] = json!([{"name": "example.com/gate"}]);
    let stage = with(&set).await;
    resolve(&stage, "scheduling-gate", "example.com/gate").await;
}

#[tokio::test(start_paused = true)]
async fn finalizer_of_a_deleted_pod_is_removed() {
    let stage = complete().await;
    let pod = format!("{PODS}/web-1");
    stage
        .patch(
            &pod,
            &json!({"metadata": {"finalizers": ["example.com/hold"]}}),
        )
        .await;
    kubectl(&stage, "kubectl -n default delete pod web-1").await;
    stage.pass(300).await;
    resolve(&stage, "pod-finalizer", "example.com/hold").await;
}

#[tokio::test(start_paused = true)]
async fn finalizer_of_a_deleted_claim_is_removed() {
    let stage = complete().await;
    let claim = "/api/v1/namespaces/default/persistentvolumeclaims/data-web-1";
    stage
        .patch(
            claim,
            &json!({"metadata": {"finalizers": ["example.com/hold"]}}),
        )
        .await;
    kubectl(&stage, "kubectl -n default delete pvc data-web-1").await;
    kubectl(&stage, "kubectl -n default delete pod web-1").await;
    stage.pass(300).await;
    resolve(&stage, "claim-finalizer", "example.com/hold").await;
}

#[tokio::test(start_paused = true)]
async fn pod_of_a_lost_node_is_released() {
    let stage = complete().await;
    let pod = stage
        .ask(
            "GET",
            &format!("{PODS}/web-1"),
            "application/json",
            &Value::Null,
        )
        .await;
    let node = pod["spec"]["nodeName"]
        .as_str()
        .expect("the pod is scheduled");
    stage.plane.nodes().lose(node).await;
    stage.pass(900).await;
    let command = format!("kubectl taint node {node} node.kubernetes.io/out-of-service");
    resolve(&stage, "node-lost", &command).await;
}

#[tokio::test(start_paused = true)]
async fn long_min_ready_seconds_are_lowered() {
    let mut set = web(2);
    set["spec"]["minReadySeconds"] = json!(86_400);
    let stage = with(&set).await;
    resolve(&stage, "min-ready-seconds", "86400").await;
}

#[tokio::test(start_paused = true)]
async fn missing_controller_is_noticed() {
    let stage = Stage::without_controller().await;
    stage.create(SETS, &web(2)).await;
    stage.pass(300).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "no-controller", "{answer:#}");
}
