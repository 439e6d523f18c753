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
async fn the_kubeconfig_of_the_administrator_works_over_tls() {
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
async fn tokens_name_users_and_nobody_else_gets_in() {
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
async fn the_kubeconfig_file_appears_whole_and_private() {
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
