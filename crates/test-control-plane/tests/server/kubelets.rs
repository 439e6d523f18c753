//! The port of the kubelets, and the proxy to a node.

use std::net::{Ipv4Addr, SocketAddr};

use futures::{AsyncBufReadExt, TryStreamExt};
use http::Request;
use kube::Client;
use kube::Config;
use kube::api::{AttachParams, LogParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::kubelet_debug::KubeletDebugParams;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::KubeletConfig;
use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::containers::assert_shell_answers;
use crate::support::{Plane, eventually, is_ready};

const POD: &str = "/api/v1/namespaces/default/pods/p";

const OF_POD: KubeletDebugParams<'_> = KubeletDebugParams {
    name: "p",
    namespace: "default",
    pod_uid: None,
};

async fn plane(listens: bool) -> Plane {
    let mut builder = TestControlPlane::builder().kubelet(KubeletConfig::default());
    if listens {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        builder = builder.listen(loopback).listen_kubelets(loopback);
    }
    let plane = Plane::new(builder.start().await);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "img:1", "ports": [{"containerPort": 80}],
            "command": ["sh", "-c", "echo started; sleep infinity"]}]},
    });
    plane.create("/api/v1/namespaces/default/pods", &pod).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane
}

/// Returns a client of the kubelets' port.
async fn kubelets(plane: &Plane, kubeconfig: Value) -> Client {
    let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.unwrap();
    config.cluster_url = plane.0.kubelet_url().unwrap().parse().unwrap();
    Client::try_from(config).unwrap()
}

async fn text(client: &Client, path: &str) -> Result<String, (u16, String)> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    client
        .request_text(request)
        .await
        .map_err(|error| match error {
            kube::Error::Api(status) => (status.code, status.message),
            other => panic!("{other}"),
        })
}

#[tokio::test]
async fn kubelets_answer_on_their_port() {
    let plane = plane(true).await;
    let client = kubelets(&plane, plane.0.kubeconfig().unwrap()).await;
    let params = AttachParams::default().stdin(true).stderr(false);
    let process = client
        .kubelet_node_exec(&OF_POD, "c", ["sh"], &params)
        .await
        .unwrap();
    assert_shell_answers(process).await;

    let params = LogParams::default();
    let log = client.kubelet_node_logs(&OF_POD, "c", &params);
    let mut lines = log.await.unwrap().lines();
    assert_eq!(lines.try_next().await.unwrap().as_deref(), Some("started"));

    let forwarded = client.kubelet_node_portforward(&OF_POD, &[80]).await;
    let mut forwarder = forwarded.unwrap();
    let mut echo = forwarder.take_stream(80).unwrap();
    echo.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    echo.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"ping");
    forwarder.abort();

    assert_eq!(text(&client, "/healthz").await.unwrap(), "ok");
    let pods: Value = serde_json::from_str(&text(&client, "/pods").await.unwrap()).unwrap();
    assert_eq!(pods["items"][0]["metadata"]["name"], "p");
    let unknown = text(&client, "/nothing").await.unwrap_err();
    assert_eq!(unknown.0, 404);
    plane.stop().await;
}

#[tokio::test]
async fn kubelets_require_permission_for_nodes() {
    let plane = plane(true).await;
    let mut anonymous = plane.0.kubeconfig().unwrap();
    anonymous["users"][0]["user"] = json!({});
    let client = kubelets(&plane, anonymous).await;
    let refused = text(&client, "/pods").await.unwrap_err();
    assert_eq!(refused, (401, "Unauthorized".to_owned()));

    let jane = plane.0.kubeconfig_for(&Identity::user("jane")).unwrap();
    let client = kubelets(&plane, jane).await;
    let refused = text(&client, "/containerLogs/default/p/c").await;
    let expected = "Forbidden (user=jane, verb=get, resource=nodes, subresource(s)=[proxy])";
    assert_eq!(refused.unwrap_err(), (403, expected.to_owned()));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_answer_through_their_proxy() {
    let plane = plane(false).await;
    let node = plane.get(POD).await["spec"]["nodeName"].take();
    let node = node.as_str().unwrap();
    let client = plane.0.client();
    let proxied = |path: &str| format!("/api/v1/nodes/{node}/proxy{path}");
    let log = text(&client, &proxied("/containerLogs/default/p/c")).await;
    assert_eq!(log.unwrap(), "started\n");
    let named = proxied("/healthz").replace("/proxy", ":10250/proxy");
    assert_eq!(text(&client, &named).await.unwrap(), "ok");
    let missing = text(&client, &proxied("/containerLogs/default/q/c")).await;
    assert_eq!(missing.unwrap_err().0, 404);

    plane.0.nodes().lose(node).await;
    let lost = text(&client, &proxied("/healthz")).await.unwrap_err();
    assert_eq!(lost.0, 503);
    assert!(lost.1.contains("no route to host"), "{}", lost.1);
    plane.stop().await;
}
