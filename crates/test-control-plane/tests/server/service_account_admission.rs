//! Admission of pods by their service account.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::json;

use crate::support::{Plane, pod};

const PODS: &str = "/api/v1/namespaces/shop/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/shop/serviceaccounts";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

async fn plane() -> Plane {
    let builder = TestControlPlane::builder().service_account_admission();
    let plane = Plane::new(builder.start().await);
    let namespace = json!({"metadata": {"name": "shop"}});
    plane.create("/api/v1/namespaces", &namespace).await;
    plane
}

#[tokio::test(start_paused = true)]
async fn containers_mount_the_token_of_the_default_account() {
    let plane = plane().await;
    let created = plane.create(PODS, &pod("p")).await;
    assert_eq!(created["spec"]["serviceAccountName"], "default");
    let volume = &created["spec"]["volumes"][0];
    let mount = &created["spec"]["containers"][0]["volumeMounts"][0];
    let expected = json!({"name": volume["name"], "readOnly": true, "mountPath": MOUNT_PATH});
    assert_eq!(*mount, expected);
    let name = volume["name"].as_str().unwrap();
    assert!(name.starts_with("kube-api-access-"), "{name}");
    let sources = &volume["projected"]["sources"];
    let token = json!({"expirationSeconds": 3607, "path": "token"});
    assert_eq!(sources[0]["serviceAccountToken"], token);
    let certificates = "/api/v1/namespaces/shop/configmaps/kube-root-ca.crt";
    let certificates = plane.get(certificates).await;
    assert!(certificates["data"]["ca.crt"].is_string());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn account_must_exist() {
    let plane = plane().await;
    let mut pod = pod("p");
    pod["spec"]["serviceAccountName"] = json!("builder");
    let (code, body) = plane.call(Method::POST, PODS, &pod).await;
    let why = "pods \"p\" is forbidden: error looking up service account shop/builder: \
               serviceaccount \"builder\" not found";
    assert_eq!((code, &body["message"]), (403, &json!(why)));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn account_gives_secrets_for_images_and_may_withhold_its_token() {
    let plane = plane().await;
    let account = json!({
        "metadata": {"name": "builder"},
        "imagePullSecrets": [{"name": "registry"}],
        "automountServiceAccountToken": false,
    });
    plane.create(ACCOUNTS, &account).await;
    let mut pod = pod("p");
    pod["spec"]["serviceAccountName"] = json!("builder");
    let created = plane.create(PODS, &pod).await;
    let secrets = json!([{"name": "registry"}]);
    assert_eq!(created["spec"]["imagePullSecrets"], secrets);
    assert_eq!(created["spec"].get("volumes"), None);
    pod["metadata"]["name"] = json!("q");
    pod["spec"]["automountServiceAccountToken"] = json!(true);
    let created = plane.create(PODS, &pod).await;
    assert!(created["spec"]["volumes"].is_array());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pods_stay_as_they_are_by_default() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let path = PODS.replace("shop", "default");
    let created = plane.create(&path, &pod("p")).await;
    assert_eq!(created["spec"].get("volumes"), None);
    plane.stop().await;
}
