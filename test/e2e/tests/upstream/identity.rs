//! Identity of pods, and their ownership.

use e2e::claims::{mounted_claims, reference};
use e2e::manifests::{paused, plain, with_claims};
use e2e::{Cluster, POD_PATIENCE};
use futures::StreamExt as _;
use integration::stateful_sets::{phase, uid};
use kube::core::WatchEvent;
use serde_json::{Value, json};
use statefulset_client::resource::PODS;

/// Controlling owner of a pod.
fn controller(pod: &Value) -> Option<&Value> {
    let owners = pod["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.find(|owner| owner["controller"] == true)
}

#[tokio::test(start_paused = true)]
async fn test_should_adopt_matching_orphans_and_release_non_matching_pods() {
    let cluster = Cluster::start("adopt").await;
    let ss = cluster.create(&paused(with_claims("ss", 1))).await;
    ss.saturate().await;
    let reference = reference(&ss).await;
    let owned = async |wanted: bool| {
        let what = format!("ss-0 has its owner: {wanted}");
        let look = async || {
            let pod = ss.pod(0).await;
            let controller = controller(&pod);
            if let Some(controller) = controller {
                assert_eq!(*controller, reference);
            }
            (controller.is_some() == wanted).then_some(())
        };
        POD_PATIENCE.until(&what, look).await;
    };
    owned(true).await;
    let pods = ss.pods().await;
    assert_eq!(pods.len(), 1);
    let labels = pods[0]["metadata"]["labels"].clone();

    let change = async |change: fn(&mut Value, &Value)| {
        let change = |pod: &mut Value| change(pod, &labels);
        cluster.space().change(&PODS, "ss-0", "", change).await;
    };
    change(|pod, _| pod["metadata"]["ownerReferences"] = json!(null)).await;
    owned(true).await;
    change(|pod, _| pod["metadata"]["labels"] = json!(null)).await;
    owned(false).await;
    change(|pod, labels| pod["metadata"]["labels"] = labels.clone()).await;
    owned(true).await;
    assert_eq!(uid(&ss.pod(0).await), uid(&pods[0]), "it is the same pod");
    cluster.finish().await;
}

#[tokio::test(start_paused = true)]
async fn test_should_not_deadlock_when_a_pods_predecessor_fails() {
    let cluster = Cluster::start("deadlock").await;
    let ss = cluster.create(&paused(with_claims("ss", 2))).await;
    ss.until_running(1, 0).await;
    cluster.resume("ss-0").await;
    ss.until_running(2, 1).await;
    let before = mounted_claims(&ss).await;
    assert_eq!(before[0][..2], ["ss-0", "datadir-ss-0"]);
    // The first pod is recreated although the second is unready. Its marker file is on its volume,
    // which survives.
    ss.replace_pods(&[0]).await;
    assert_eq!(mounted_claims(&ss).await, before);
    ss.until_running(2, 1).await;
    cluster.resume("ss-1").await;
    ss.until_ready(2).await;
    cluster.finish().await;
}

/// A pod whose port is taken on its node fails repeatedly, and runs once the port is free.
#[tokio::test(start_paused = true)]
async fn test_should_recreate_evicted_statefulset() {
    const PORT: u32 = 21017;
    let cluster = Cluster::start("evicted").await;
    let space = cluster.space();
    let node = cluster.node().await["metadata"]["name"].clone();
    let ports = json!([{"containerPort": PORT, "hostPort": PORT}]);
    let blocker = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "test-pod"},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "webserver", "image": "nginx", "ports": ports}],
        },
    });
    space.create(&PODS, &blocker).await;
    let runs = async |pod: &str| {
        let look = async || {
            let pod = space.find(&PODS, pod, "").await;
            pod.filter(|pod| phase(pod) == "Running")
        };
        POD_PATIENCE.until(&format!("{pod} runs"), look).await
    };
    runs("test-pod").await;

    let version = space.list_object(&PODS, "").await;
    let version = version["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut set = plain("ss", 1);
    let pod = &mut set["spec"]["template"]["spec"];
    pod["nodeName"] = node;
    pod["containers"][0]["ports"] = ports;
    let ss = cluster.create(&set).await;
    let mut events = space.watch(&PODS, ss.selector(), &version).await;
    let rejected = async {
        loop {
            let event = events.next().await.expect("the watch goes on");
            if let WatchEvent::Deleted(pod) = event {
                return pod;
            }
        }
    };
    let rejected = tokio::time::timeout(POD_PATIENCE.0, rejected)
        .await
        .unwrap();
    assert_eq!(phase(&rejected), "Failed", "{rejected}");

    space.delete(&PODS, "test-pod", Some(0)).await;
    let running = runs("ss-0").await;
    assert_ne!(uid(&running), uid(&rejected));
    ss.until_ready(1).await;
    cluster.finish().await;
}
