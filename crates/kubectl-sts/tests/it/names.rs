//! Names that other pods hold, or that are too long, and pods that can't be repaired.

use serde_json::{Value, json};

use crate::kubectl::kubectl;
use crate::stage::{SET, SETS, Stage, complete, resolve, web, why};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Deletes the set and creates it again after a few seconds.
async fn recreate(stage: &Stage) {
    let options = json!({"propagationPolicy": "Background"});
    stage.ask("DELETE", SET, "application/json", &options).await;
    stage.pass(3).await;
    stage.create(SETS, &web(3)).await;
}

async fn pod_uid(stage: &Stage, name: &str) -> String {
    let path = format!("{PODS}/{name}");
    let pod = stage.get(&path).await;
    pod["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

#[tokio::test(start_paused = true)]
async fn hanging_pod_of_an_earlier_set_is_named() {
    let mut set = web(3);
    set["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(5);
    let stage = Stage::start().await;
    stage.create(SETS, &set).await;
    stage.pass(60).await;
    let hangs = json!({"metadata": {"annotations": {"kubelet.test-control-plane/stop": "hangs"}}});
    stage.patch(&format!("{PODS}/web-1"), &hangs).await;
    let uid = pod_uid(&stage, "web-1").await;
    recreate(&stage).await;
    stage.pass(10).await;
    let early = why(&stage).await;
    assert_eq!(early["cause"], "name-terminating", "{early:#}");
    let text = early["text"].as_str().expect("a text");
    assert!(
        text.starts_with("the name web-1 is held by a pod of an earlier StatefulSet web (uid "),
        "{text}"
    );
    assert!(
        text.contains("which is terminating since 2026-03-01T12:01:00Z"),
        "{text}"
    );
    assert!(early["evidence"].to_string().contains(&uid), "{early:#}");
    let force = "kubectl -n default delete pod web-1 --grace-period=0 --force";
    assert_eq!(early["resolve"], json!([force]), "{early:#}");
    stage.pass(60).await;
    resolve(&stage, "name-terminating", "its kubelet doesn't stop it").await;
}

#[tokio::test(start_paused = true)]
async fn finalizer_of_an_earlier_pod_is_named() {
    let stage = complete().await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    stage.patch(&format!("{PODS}/web-1"), &hold).await;
    recreate(&stage).await;
    stage.pass(90).await;
    resolve(&stage, "name-terminating", "finalizers (example.com/hold)").await;
}

#[tokio::test(start_paused = true)]
async fn lost_node_of_an_earlier_pod_is_named() {
    let stage = complete().await;
    let path = format!("{PODS}/web-1");
    let pod = stage.get(&path).await;
    let node = pod["spec"]["nodeName"].as_str().expect("a node").to_owned();
    stage.plane.nodes().lose(&node).await;
    recreate(&stage).await;
    stage.pass(120).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "name-terminating", "{answer:#}");
    let text = answer["text"].as_str().expect("a text");
    assert!(
        text.contains(&format!("on node {node}, which is lost")),
        "{text}"
    );
    let command = format!("kubectl taint node {node} node.kubernetes.io/out-of-service");
    assert!(
        answer["resolve"][0]
            .as_str()
            .expect("a command")
            .starts_with(&command)
    );
    kubectl(&stage, answer["resolve"][0].as_str().expect("a command")).await;
    let again = why(&stage).await;
    assert_eq!(again["resolve"], json!([]), "{again:#}");
}

/// A taint that exists changes nothing, and neither does the deletion of a pod on a lost node.
#[tokio::test(start_paused = true)]
async fn pod_on_a_lost_node_needs_no_deletion() {
    let stage = complete().await;
    let path = format!("{PODS}/web-1");
    let pod = stage.get(&path).await;
    let node = pod["spec"]["nodeName"].as_str().expect("a node");
    stage.plane.nodes().lose(node).await;
    stage.pass(180).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "node-lost", "{answer:#}");
    assert!(
        !answer["resolve"].to_string().contains("delete pod"),
        "{answer:#}"
    );
}

#[tokio::test(start_paused = true)]
async fn too_long_name_is_named() {
    let name = "a".repeat(55);
    let mut set = web(2);
    set["metadata"]["name"] = json!(name);
    let stage = Stage::start().await;
    stage.create(SETS, &set).await;
    stage.pass(60).await;
    let text = stage.sts(&format!("why {name} -o json")).await;
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    let answer = &answer["sets"][0];
    assert_eq!(answer["cause"], "name-too-long", "{answer:#}");
    assert_eq!(answer["state"], "stuck", "{answer:#}");
    let text = answer["text"].as_str().expect("a text");
    assert!(
        text.starts_with("the name of the set has 55 characters, so the label"),
        "{text}"
    );
    assert!(
        answer["evidence"]
            .to_string()
            .contains("must be no more than 63"),
        "{answer:#}"
    );
    assert!(
        answer["caution"]
            .to_string()
            .contains("at most 52 characters"),
        "{answer:#}"
    );
}

/// A set is recreated with one more claim template, and adopts its pods
/// (kubernetes/kubernetes#141876).
#[tokio::test(start_paused = true)]
async fn adopted_pod_without_a_new_volume_is_deleted() {
    let stage = complete().await;
    let options = json!({"propagationPolicy": "Orphan"});
    stage.ask("DELETE", SET, "application/json", &options).await;
    stage.pass(10).await;
    let mut set = web(3);
    let mut template = set["spec"]["volumeClaimTemplates"][0].clone();
    template["metadata"]["name"] = json!("log");
    set["spec"]["volumeClaimTemplates"]
        .as_array_mut()
        .expect("a list")
        .push(template);
    stage.create(SETS, &set).await;
    stage.pass(120).await;
    let answer = why(&stage).await;
    let caution = answer["caution"].as_str().expect("a text");
    assert_eq!(
        caution, "web-1, web-2 need the same, one by one",
        "{answer:#}"
    );
    resolve(
        &stage,
        "storage-mismatch",
        "no volume for the claim log-web-0",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn on_delete_leaves_terminating_pods_out() {
    let stage = complete().await;
    let strategy = json!({"type": "OnDelete", "rollingUpdate": null});
    stage
        .patch(SET, &json!({"spec": {"updateStrategy": strategy}}))
        .await;
    stage.set_image("app:2").await;
    stage.pass(30).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    stage.patch(&format!("{PODS}/web-2"), &hold).await;
    let answer = why(&stage).await;
    let delete = "kubectl -n default delete pod web-0 web-1 web-2 --wait=false";
    assert_eq!(answer["resolve"], json!([delete]), "{answer:#}");
    kubectl(&stage, "kubectl -n default delete pod web-2").await;
    for _ in 0..10 {
        let answer = why(&stage).await;
        assert!(
            !answer["resolve"].to_string().contains("delete pod web-2"),
            "{answer:#}"
        );
        stage.pass(20).await;
    }
}

#[tokio::test(start_paused = true)]
async fn terminating_claim_in_use_is_named() {
    let stage = complete().await;
    kubectl(&stage, "kubectl -n default delete pvc data-web-1").await;
    let text = stage.sts("why web").await;
    assert!(
        text.contains("settled: nothing is left to do, but a claim in use is being deleted"),
        "{text}"
    );
    let risk = "  risk      claim data-web-1 is being deleted since 2026-03-01T12:01:00Z and goes as \
                soon as pod web-1 ends: its volume pvc-";
    assert!(text.contains(risk), "{text}");
    // The table of unsettled sets includes it.
    let table = stage.sts("why").await;
    assert!(table.contains("claim-terminating"), "{table}");
    let watch = stage.sts("watch web --once").await;
    assert!(watch.contains("data-web-1 Terminating"), "{watch}");
    assert!(
        watch.contains("claim data-web-1 is being deleted"),
        "{watch}"
    );
    // The printed command keeps the data.
    let protect = text
        .lines()
        .find_map(|line| line.strip_prefix("  protect   "));
    kubectl(&stage, protect.expect("a command")).await;
    let text = stage.sts("why web").await;
    assert!(text.contains("then keeps the data"), "{text}");
    assert!(!text.contains("protect"), "{text}");
}
