//! Extreme numbers, and panics of actors.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use crate::support::{Plane, eventually, is_ready, pod};
use futures::FutureExt;
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{Crash, KubeletConfig, PodBehaviour};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";

/// Changes a pod, creates it, and waits until all actors have processed it; they must survive.
async fn outlives(change: impl Fn(&mut Value), delete: Option<Value>) {
    let plane = Plane::new(TestControlPlane::builder().all_actors().start().await);
    let mut wild = pod("wild");
    change(&mut wild);
    plane.create(PODS, &wild).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let path = format!("{PODS}/wild");
    if let Some(options) = delete {
        let (code, answer) = plane.call(Method::DELETE, &path, &options).await;
        assert_eq!(code, 200, "{answer}");
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    plane.create(PODS, &pod("tame")).await;
    let tame = format!("{PODS}/tame");
    eventually(|| async { is_ready(&plane.get(&tame).await) }).await;
    plane.stop().await;
}

fn annotated(name: &'static str, value: &'static str) -> impl Fn(&mut Value) {
    move |pod| {
        let name = format!("kubelet.test-control-plane/{name}");
        pod["metadata"]["annotations"] = json!({name: value});
    }
}

#[tokio::test(start_paused = true)]
async fn delays_may_exceed_the_clocks_range() {
    for name in ["start-delay", "ready-delay", "init-delay", "stop-delay"] {
        for value in ["4000000000000000h", "1s..4000000000000000h"] {
            let set = annotated(name, value);
            let change = |pod: &mut Value| {
                set(pod);
                pod["spec"]["initContainers"] = json!([{"name": "i", "image": "img:1"}]);
            };
            outlives(change, Some(json!({}))).await;
        }
    }
    let value = "{after: 4000000000000000h, signal: 2147483647}";
    outlives(annotated("crash", value), None).await;
    outlives(annotated("crash", "{signal: 2147483647}"), None).await;
    let value = "{readyFor: 4000000000000000h, unreadyFor: 4000000000000000h}";
    outlives(annotated("flap", value), None).await;
}

#[tokio::test(start_paused = true)]
async fn grace_periods_may_exceed_the_clocks_range() {
    let options = json!({"gracePeriodSeconds": i64::MAX});
    for stop in ["obeys", "ignores-sigterm", "hangs"] {
        outlives(annotated("stop", stop), Some(options.clone())).await;
        let set = annotated("stop", stop);
        let change = |pod: &mut Value| {
            set(pod);
            pod["spec"]["terminationGracePeriodSeconds"] = json!(i64::MAX);
        };
        outlives(change, Some(json!({}))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn tolerations_may_exceed_the_clocks_range() {
    let plane = Plane::new(TestControlPlane::builder().all_actors().start().await);
    let mut wild = pod("wild");
    wild["spec"]["tolerations"] = json!([{
        "key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": i64::MAX,
    }]);
    plane.create(PODS, &wild).await;
    let path = format!("{PODS}/wild");
    eventually(|| async { is_ready(&plane.get(&path).await) }).await;
    let node = plane.get(&path).await["spec"]["nodeName"].clone();
    let node = node.as_str().unwrap_or_default();
    let tainted = plane.0.nodes().taint(node, "k", "", "NoExecute").await;
    assert_eq!(tainted, Ok(()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!plane.is_deleting(&path).await);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn overflowing_requests_are_unschedulable() {
    let plane = Plane::new(TestControlPlane::builder().all_actors().start().await);
    let mut wild = pod("wild");
    let huge = json!({"requests": {"memory": "5Ei", "cpu": "9Ei"}});
    wild["spec"]["containers"] = json!([
        {"name": "a", "image": "img:1", "resources": huge},
        {"name": "b", "image": "img:1", "resources": huge},
    ]);
    plane.create(PODS, &wild).await;
    let path = format!("{PODS}/wild");
    let message = || async {
        let pod = plane.get(&path).await;
        let condition = &pod["status"]["conditions"][0];
        condition["message"].as_str().unwrap_or("").to_owned()
    };
    eventually(|| async { message().await.contains("3 Insufficient cpu") }).await;
    // A node without reported capacity accepts any amount.
    let mut bound = wild.clone();
    bound["metadata"]["name"] = json!("bound");
    bound["spec"]["nodeName"] = json!("node-0");
    plane.create(PODS, &bound).await;
    plane.create(PODS, &pod("tame")).await;
    let tame = format!("{PODS}/tame");
    eventually(|| async { is_ready(&plane.get(&tame).await) }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watch_timeouts_may_exceed_the_clocks_range() {
    let plane = Plane::new(TestControlPlane::builder().start().await);
    let request = http::Request::builder()
        .uri(format!("{NODES}?watch=1&timeoutSeconds={}", i64::MAX))
        .body(http_body_util::Full::<bytes::Bytes>::default())
        .unwrap();
    let reply = plane.0.server().serve(request).await.unwrap();
    assert_eq!(reply.status(), 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn panicking_actor_fails_the_test() {
    let kubelet = KubeletConfig::default().rule(|pod| {
        assert!(pod["metadata"]["name"] != "deadly", "the rule panics");
        None::<PodBehaviour>
    });
    let plane = Plane::new(TestControlPlane::builder().kubelet(kubelet).start().await);
    plane.create(PODS, &pod("deadly")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let pods = plane.0.pods();
    let order = AssertUnwindSafe(pods.crash("default", "deadly", Crash::default()));
    assert!(order.catch_unwind().await.is_err());
    assert!(AssertUnwindSafe(plane.stop()).catch_unwind().await.is_err());
}
