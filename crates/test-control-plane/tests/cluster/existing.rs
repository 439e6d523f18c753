//! The existing-cluster backend, with an embedded control plane as the cluster.

use http::Request;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::cluster::{ClusterError, TestCluster};
use serde_json::Value;

pub(crate) async fn config(kubeconfig: &Value) -> Config {
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig.to_string()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.unwrap()
}

/// Returns the status code of a list of namespaces.
pub(crate) async fn code(client: &kube::Client) -> u16 {
    let request = Request::get("/api/v1/namespaces").body(Vec::new()).unwrap();
    match client.request_text(request).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(err) => panic!("{err}"),
    }
}

// A dropped client needs the server to keep running.
#[tokio::test(flavor = "multi_thread")]
async fn existing_cluster_is_left_unchanged() {
    let plane = TestControlPlane::builder()
        .listen("127.0.0.1:0".parse().unwrap())
        .start()
        .await;
    let admin = config(&plane.kubeconfig().unwrap()).await;
    let cluster = TestCluster::builder().connect(admin.clone()).await.unwrap();
    assert_eq!(cluster.url(), plane.url());
    assert_eq!(code(&cluster.client()).await, 200);
    let written = config(&cluster.kubeconfig().unwrap()).await;
    assert_eq!(code(&kube::Client::try_from(written).unwrap()).await, 200);

    // Users have only their roles' permissions, and the server identifies them.
    let user = Identity::user("jane")
        .uid("7")
        .group("developers")
        .extra("scopes", "few");
    assert_eq!(code(&cluster.client_as(&user).unwrap()).await, 403);
    let written = config(&cluster.kubeconfig_for(&user).unwrap()).await;
    assert_eq!(code(&kube::Client::try_from(written).unwrap()).await, 403);
    let seen = plane.server().audit().entries();
    let seen = &seen.last().unwrap().identity;
    assert_eq!((&*seen.name, &*seen.uid), ("jane", "7"));
    assert!(seen.is_in("developers"));
    assert_eq!(seen.extra["scopes"], ["few"]);

    // The namespaces created for the test are deleted.
    let made = cluster.create_namespace("mine").await.unwrap();
    assert!(made.starts_with("mine-"), "{made}");
    let dropped = TestCluster::builder().connect(admin).await.unwrap();
    dropped.create_namespace("mine").await.unwrap();
    assert_eq!(plane.server().store().list("namespaces", "").1.len(), 6);
    drop(dropped);

    let refused = cluster.embedded().unwrap_err();
    assert_eq!(refused.variable, "USE_EXISTING_CLUSTER");
    cluster.stop().await.unwrap();
    let (_, namespaces) = plane.server().store().list("namespaces", "");
    assert_eq!(namespaces.iter().filter(|n| n.deleting).count(), 2);
    assert_eq!(namespaces.len(), 6);
    let admin = config(&plane.kubeconfig().unwrap()).await;
    assert_eq!(code(&kube::Client::try_from(admin).unwrap()).await, 200);
    plane.stop().await;
}

#[tokio::test]
async fn unreachable_or_forbidden_cluster_is_an_error() {
    let plane = TestControlPlane::builder()
        .listen("127.0.0.1:0".parse().unwrap())
        .start()
        .await;
    let url = plane.url().unwrap();
    let stranger = plane.kubeconfig_with_token("nobody", "unknown").unwrap();
    let stranger = config(&stranger).await;
    let error = TestCluster::builder().connect(stranger).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("the existing cluster {url}/ can't be used: ")),
        "{text}"
    );
    assert!(text.contains("Unauthorized"), "{text}");

    let admin = config(&plane.kubeconfig().unwrap()).await;
    plane.stop().await;
    let error = TestCluster::builder().connect(admin).await.unwrap_err();
    assert!(matches!(error, ClusterError::Unreachable { .. }), "{error}");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
}
