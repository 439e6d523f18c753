//! Pods that refer to secrets, config maps and service accounts.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::actors::{KubeletConfig, PodBehaviour};
use serde_json::{Value, json};

use super::{POD, PODS, condition, container, plane, plane_with, waiting};
use crate::support::{Plane, eventually, is_ready, pod};

const NAMESPACE: &str = "/api/v1/namespaces/default";

/// Longer than any delay of the kubelet.
const LONG: Duration = Duration::from_secs(600);

async fn create(plane: &Plane, plural: &str, name: &str, data: Value) {
    let object = json!({"metadata": {"name": name}, "data": data});
    plane
        .create(&format!("{NAMESPACE}/{plural}"), &object)
        .await;
}

fn with_env(env: Value) -> Value {
    let mut pod = pod("p");
    pod["spec"]["containers"][0]["env"] = env;
    pod
}

fn with_volume(mut volume: Value) -> Value {
    let mut pod = pod("p");
    volume["name"] = json!("v");
    pod["spec"]["volumes"] = Value::Array(vec![volume]);
    pod
}

fn secret_key(name: &str, key: &str) -> Value {
    json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": key}}}])
}

fn map_key(name: &str, key: &str) -> Value {
    json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": name, "key": key}}}])
}

async fn is_pod_ready(plane: &Plane) -> bool {
    is_ready(&plane.get(POD).await)
}

fn message(pod: &Value) -> &Value {
    &container(pod)["state"]["waiting"]["message"]
}

#[tokio::test(start_paused = true)]
async fn container_waits_for_the_secret_and_the_key_of_a_variable() {
    let plane = plane(PodBehaviour::default()).await;
    plane.create(PODS, &with_env(secret_key("s", "k"))).await;
    eventually(|| async { waiting(&plane.get(POD).await) == "CreateContainerConfigError" }).await;
    tokio::time::sleep(LONG).await;
    let found = plane.get(POD).await;
    assert_eq!(message(&found), "secret \"s\" not found");
    assert_eq!(found["status"]["phase"], "Pending");
    // The sandbox exists.
    assert!(found["status"]["podIP"].is_string());
    assert_eq!(
        condition(&found, "PodReadyToStartContainers")["status"],
        "True"
    );

    create(&plane, "secrets", "s", json!({"other": "eA=="})).await;
    let missing_key = "couldn't find key k in Secret default/s";
    eventually(|| async { message(&plane.get(POD).await) == missing_key }).await;
    let patch = json!({"data": {"k": "eA=="}});
    plane
        .call(Method::PATCH, &format!("{NAMESPACE}/secrets/s"), &patch)
        .await;
    eventually(|| is_pod_ready(&plane)).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pod_waits_for_its_volumes_before_any_container_starts() {
    let plane = plane(PodBehaviour::default()).await;
    let mut sent =
        with_volume(json!({"configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}}));
    sent["spec"]["initContainers"] = json!([{"name": "first", "image": "i:1"}]);
    plane.create(PODS, &sent).await;
    tokio::time::sleep(LONG).await;
    let found = plane.get(POD).await;
    assert_eq!(waiting(&found), "PodInitializing");
    assert_eq!(
        found["status"]["initContainerStatuses"][0]["state"],
        json!({"waiting": {"reason": "PodInitializing"}})
    );
    assert!(found["status"].get("podIP").is_none());
    assert_eq!(
        condition(&found, "PodReadyToStartContainers")["status"],
        "False"
    );
    create(&plane, "configmaps", "m", json!({})).await;
    tokio::time::sleep(LONG).await;
    assert!(!is_pod_ready(&plane).await);
    let patch = json!({"binaryData": {"k": "eA=="}});
    plane
        .call(Method::PATCH, &format!("{NAMESPACE}/configmaps/m"), &patch)
        .await;
    eventually(|| is_pod_ready(&plane)).await;
    plane.stop().await;
}

/// The pod waits for every kind of reference, and starts once the object exists.
#[tokio::test(start_paused = true)]
async fn every_kind_of_reference_holds_the_pod() {
    let in_env_from = |source: Value| {
        let mut pod = pod("p");
        pod["spec"]["containers"][0]["envFrom"] = json!([source]);
        pod
    };
    let projected = |source: Value| with_volume(json!({"projected": {"sources": [source]}}));
    let mut with_token = projected(json!({"serviceAccountToken": {"path": "t"}}));
    with_token["spec"]["serviceAccountName"] = json!("x");
    let in_init_container = {
        let mut pod = pod("p");
        pod["spec"]["initContainers"] =
            json!([{"name": "first", "image": "i:1", "env": map_key("x", "k")}]);
        pod
    };
    for (sent, plural) in [
        (with_env(secret_key("x", "k")), "secrets"),
        (with_env(map_key("x", "k")), "configmaps"),
        (in_env_from(json!({"secretRef": {"name": "x"}})), "secrets"),
        (
            in_env_from(json!({"configMapRef": {"name": "x"}})),
            "configmaps",
        ),
        (
            with_volume(json!({"secret": {"secretName": "x"}})),
            "secrets",
        ),
        (
            with_volume(json!({"configMap": {"name": "x"}})),
            "configmaps",
        ),
        (projected(json!({"secret": {"name": "x"}})), "secrets"),
        (projected(json!({"configMap": {"name": "x"}})), "configmaps"),
        (with_token, "serviceaccounts"),
        (in_init_container, "configmaps"),
    ] {
        let plane = plane(PodBehaviour::default()).await;
        plane.create(PODS, &sent).await;
        tokio::time::sleep(LONG).await;
        assert!(!is_pod_ready(&plane).await, "{sent}");
        // An object of another name doesn't help.
        if plural == "serviceaccounts" {
            let account = json!({"metadata": {"name": "x"}});
            plane
                .create(&format!("{NAMESPACE}/{plural}"), &account)
                .await;
        } else {
            create(&plane, plural, "y", json!({"k": "eA=="})).await;
            tokio::time::sleep(LONG).await;
            assert!(!is_pod_ready(&plane).await, "{sent}");
            create(&plane, plural, "x", json!({"k": "eA=="})).await;
        }
        eventually(|| is_pod_ready(&plane)).await;
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn optional_references_and_pull_secrets_hold_no_pod() {
    let plane = plane(PodBehaviour::default()).await;
    create(&plane, "configmaps", "without-keys", json!({})).await;
    let mut sent = pod("p");
    let reference = json!({"name": "absent", "optional": true});
    let key = |name: &str| json!({"name": name, "key": "k", "optional": true});
    let container = &mut sent["spec"]["containers"][0];
    container["envFrom"] = json!([{"secretRef": reference}, {"configMapRef": reference}]);
    container["env"] = json!([
        {"name": "A", "valueFrom": {"secretKeyRef": key("absent")}},
        {"name": "B", "valueFrom": {"configMapKeyRef": key("without-keys")}},
        {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]);
    let items = json!([{"key": "k", "path": "p"}]);
    sent["spec"]["volumes"] = json!([
        {"name": "a", "secret": {"secretName": "absent", "optional": true}},
        {"name": "b", "configMap": {"name": "without-keys", "optional": true, "items": items}},
        {"name": "c", "projected": {"sources": [
            {"secret": reference}, {"downwardAPI": {}},
        ]}},
        {"name": "d", "emptyDir": {}},
    ]);
    sent["spec"]["imagePullSecrets"] = json!([{"name": "absent"}]);
    sent["spec"]["serviceAccountName"] = json!("absent");
    sent["spec"]["automountServiceAccountToken"] = json!(false);
    plane.create(PODS, &sent).await;
    eventually(|| is_pod_ready(&plane)).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pod_waits_for_its_service_account() {
    let plane = plane(PodBehaviour::default()).await;
    let mut sent = pod("p");
    sent["spec"]["serviceAccountName"] = json!("runner");
    plane.create(PODS, &sent).await;
    tokio::time::sleep(LONG).await;
    assert!(!is_pod_ready(&plane).await);
    let account = json!({"metadata": {"name": "runner"}});
    let accounts = format!("{NAMESPACE}/serviceaccounts");
    plane.create(&accounts, &account).await;
    eventually(|| is_pod_ready(&plane)).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_pod_can_be_deleted_and_reaches_its_deadline() {
    let plane = plane(PodBehaviour::default()).await;
    let mut sent = with_volume(json!({"secret": {"secretName": "absent"}}));
    sent["spec"]["activeDeadlineSeconds"] = json!(30);
    plane.create(PODS, &sent).await;
    let is_failed = async || plane.get(POD).await["status"]["reason"] == "DeadlineExceeded";
    eventually(is_failed).await;
    plane.call(Method::DELETE, POD, &json!({})).await;
    eventually(|| async { plane.code(POD).await == 404 }).await;
    for sent in [
        with_volume(json!({"secret": {"secretName": "absent"}})),
        with_env(secret_key("absent", "k")),
    ] {
        plane.create(PODS, &sent).await;
        tokio::time::sleep(LONG).await;
        plane.call(Method::DELETE, POD, &json!({})).await;
        eventually(|| async { plane.code(POD).await == 404 }).await;
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn kubelets_can_ignore_missing_objects() {
    let config = KubeletConfig::default().ignores_missing_references(true);
    let plane = plane_with(config).await;
    let mut sent = with_volume(json!({"secret": {"secretName": "absent"}}));
    sent["spec"]["containers"][0]["env"] = secret_key("absent", "k");
    plane.create(PODS, &sent).await;
    eventually(|| is_pod_ready(&plane)).await;
    plane.stop().await;
}
