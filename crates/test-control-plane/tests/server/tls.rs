//! The loopback port: TLS, certificates, tokens.

use std::net::{Ipv4Addr, SocketAddr};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Config;
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::{Identity, Tokens};
use serde_json::{Value, json};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

async fn client(config: &Value) -> kube::Client {
    let kubeconfig: Kubeconfig = serde_json::from_value(config.clone()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test]
async fn administrator_kubeconfig_works_over_tls() {
    let plane = TestControlPlane::builder().listen(LOOPBACK).start().await;
    let client = client(&plane.kubeconfig().unwrap()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &map("m"))
        .await
        .unwrap();
    assert_eq!(
        maps.list(&ListParams::default()).await.unwrap().items.len(),
        1
    );
    plane.stop().await;
}

#[tokio::test]
async fn only_known_tokens_authenticate() {
    let mut tokens = Tokens::default();
    tokens.insert("secret", Identity::user("me").group("system:masters"));
    let plane = TestControlPlane::builder()
        .tokens(tokens)
        .listen(LOOPBACK)
        .start()
        .await;
    let mut config = plane.kubeconfig().unwrap();
    for (user, code) in [
        (json!({"token": "secret"}), None),
        (json!({"token": "wrong"}), Some(401)),
        (json!({}), Some(403)),
    ] {
        config["users"][0]["user"] = user;
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&config).await);
        let found = match maps.list(&ListParams::default()).await {
            Ok(_) => None,
            Err(kube::Error::Api(status)) => Some(status.code),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(found, code);
    }
    plane.stop().await;
}

#[tokio::test]
async fn only_loopback_addresses_are_opened() {
    let address = SocketAddr::from(([0, 0, 0, 0], 0));
    let started = TestControlPlane::builder()
        .listen(address)
        .try_start()
        .await;
    assert!(started.unwrap_err().to_string().contains("loopback"));
}

#[tokio::test]
async fn kubeconfig_file_is_atomic_and_private() {
    let plane = TestControlPlane::builder().listen(LOOPBACK).start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    plane.write_kubeconfig(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        plane.kubeconfig().unwrap()
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let missing = folder.path().join("no/kubeconfig");
    assert!(plane.write_kubeconfig(&missing).is_err());
    plane.stop().await;
}

async fn who(config: &Value) -> Value {
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("Content-Type", "application/json")
        .body(b"{}".to_vec())
        .unwrap();
    let review: Value = client(config).await.request(request).await.unwrap();
    review["status"]["userInfo"].clone()
}

#[tokio::test]
async fn users_get_separate_kubeconfigs() {
    let plane = TestControlPlane::builder().listen(LOOPBACK).start().await;
    let alice = Identity::user("alice").uid("1-2").group("devs");
    let config = plane.kubeconfig_for(&alice).unwrap();
    assert!(config["users"][0]["user"]["client-certificate-data"].is_string());
    let mut info = who(&config).await;
    let extra = info.as_object_mut().unwrap().remove("extra").unwrap();
    assert_eq!(
        info,
        json!({"username": "alice", "uid": "1-2", "groups": ["devs", "system:authenticated"]})
    );
    let id = extra["authentication.kubernetes.io/credential-id"][0].as_str();
    assert!(id.unwrap().starts_with("X509SHA256="));

    let robot = Identity::service_account("default", "robot").extra("a", "b");
    let config = plane.kubeconfig_for(&robot).unwrap();
    assert!(config["users"][0]["user"]["token"].is_string());
    assert_eq!(
        who(&config).await,
        json!({
            "username": "system:serviceaccount:default:robot",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default",
                "system:authenticated"],
            "extra": {"a": ["b"]},
        })
    );

    let token = plane.issue_token(&Identity::user("bob"));
    let config = plane.kubeconfig_with_token("bob", &token).unwrap();
    assert_eq!(who(&config).await["username"], "bob");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    plane.write_kubeconfig_for(&alice, &path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(who(&written).await["username"], "alice");
    plane.stop().await;
}

#[tokio::test]
async fn certificate_takes_precedence_over_a_token() {
    let plane = TestControlPlane::builder().listen(LOOPBACK).start().await;
    let mut config = plane.kubeconfig_for(&Identity::user("alice")).unwrap();
    config["users"][0]["user"]["token"] = json!("wrong");
    assert_eq!(who(&config).await["username"], "alice");
    plane.stop().await;
}

#[tokio::test]
async fn kubeconfig_needs_a_port() {
    let plane = TestControlPlane::builder().start().await;
    assert!(plane.kubeconfig().is_none());
    let error = plane.kubeconfig_for(&Identity::user("a")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the control plane has no port: listening is off"
    );
    plane.stop().await;
}

#[tokio::test]
async fn client_authority_is_published_to_components() {
    let plane = TestControlPlane::builder().listen(LOOPBACK).start().await;
    let manager = Identity::user("system:kube-controller-manager");
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let (code, map) = plane
        .server()
        .call_json_as(&manager, http::Method::GET, path, "test", &Value::Null)
        .await;
    assert_eq!(code, 200, "{map}");
    let kubeconfig = plane.kubeconfig().unwrap();
    let authority = &kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"];
    let published = map["data"]["client-ca-file"].as_str().unwrap();
    assert!(published.starts_with("-----BEGIN CERTIFICATE-----"));
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, published);
    assert_eq!(*authority, encoded);
    plane.stop().await;
}
