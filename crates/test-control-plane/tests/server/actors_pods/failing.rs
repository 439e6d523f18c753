//! Failures and restarts of containers.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::actors::{Crash, ImagePullFailure, PodBehaviour};
use serde_json::json;

use super::{
    POD, PODS, after, condition, container, plane, seconds, started, status_column, waiting,
};
use crate::support::{eventually, is_ready};

#[tokio::test(start_paused = true)]
async fn crashing_container_backs_off() {
    let (plane, start) =
        started(PodBehaviour::default().crash(Crash::default().after(seconds(5)).exit_code(3)))
            .await;
    let restarts = |wanted: u32| {
        let plane = &plane;
        move || async move { container(&plane.get(POD).await)["restartCount"] == wanted }
    };
    eventually(|| async { status_column(&plane).await == "0/1 Error 0" }).await;
    assert_eq!(start.elapsed().as_secs(), 5);
    // The first restart is immediate, then the back-off counts from the exit.
    let mut times = vec![after(start, restarts(1)).await];
    eventually(|| async { waiting(&plane.get(POD).await) == "CrashLoopBackOff" }).await;
    let pod = plane.get(POD).await;
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(
        status_column(&plane).await,
        "0/1 CrashLoopBackOff 1 (1s ago)"
    );
    let ready = condition(&pod, "Ready");
    assert_eq!(ready["reason"], "ContainersNotReady");
    assert_eq!(ready["message"], "containers with unready status: [c]");
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        container(&pod)["state"]["waiting"]["message"],
        format!("back-off 10s restarting failed container=c pod=p_default({uid})")
    );
    let last = &container(&pod)["lastState"]["terminated"];
    assert_eq!(
        (&last["exitCode"], &last["reason"], &last["finishedAt"]),
        (&json!(3), &json!("Error"), &json!("2026-01-01T00:00:11Z"))
    );
    for wanted in 2..9 {
        times.push(after(start, restarts(wanted)).await);
    }
    // The first restart is at 6 seconds, each later one after 5 seconds of running and a back-off
    // of 10, 20, 40 … 300 seconds.
    assert_eq!(times, [6, 21, 46, 91, 176, 341, 646, 951]);
    assert_eq!(
        condition(&plane.get(POD).await, "Initialized")["status"],
        "True"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn container_recovers_after_limited_crashes() {
    let (plane, _) =
        started(PodBehaviour::default().crash(Crash::default().times(3).reason("OOMKilled"))).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let pod = plane.get(POD).await;
    assert!(is_ready(&pod));
    let last = &container(&pod)["lastState"]["terminated"];
    assert_eq!(
        (&last["exitCode"], &last["reason"]),
        (&json!(137), &json!("OOMKilled"))
    );
    assert_eq!(container(&pod)["restartCount"], 3);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_image_pull_is_retried() {
    let (plane, start) =
        started(PodBehaviour::default().image_pull_failure(ImagePullFailure::default().times(3)))
            .await;
    eventually(|| async { waiting(&plane.get(POD).await) == "ErrImagePull" }).await;
    assert_eq!(status_column(&plane).await, "0/1 ErrImagePull 0");
    let message = "rpc error: code = NotFound desc = failed to pull and unpack image \
                   \"docker.io/library/img:1\": failed to resolve reference \
                   \"docker.io/library/img:1\": docker.io/library/img:1: not found";
    let pod = plane.get(POD).await;
    assert_eq!(container(&pod)["state"]["waiting"]["message"], message);
    eventually(|| async { waiting(&plane.get(POD).await) == "ImagePullBackOff" }).await;
    let pod = plane.get(POD).await;
    assert_eq!(
        container(&pod)["state"]["waiting"]["message"],
        format!("Back-off pulling image \"img:1\": ErrImagePull: {message}")
    );
    assert_eq!(pod["status"]["phase"], "Pending");
    // Attempts at 0, 10, 30 and 70 seconds; the last one succeeds.
    let ready = after(start, || async { is_ready(&plane.get(POD).await) }).await;
    assert_eq!(ready, 70);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn new_image_ends_pull_failures_immediately() {
    let failure = ImagePullFailure::default();
    for failure in [failure.clone(), failure.image("*:1")] {
        let (plane, start) = started(PodBehaviour::default().image_pull_failure(failure)).await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        let image = json!({"spec": {"containers": [{"name": "c", "image": "img:2"}]}});
        plane.call(Method::PATCH, POD, &image).await;
        let ready = after(start, || async { is_ready(&plane.get(POD).await) }).await;
        assert_eq!(ready, 100);
        // A running container is restarted with a new image.
        let image = json!({"spec": {"containers": [{"name": "c", "image": "img:3"}]}});
        plane.call(Method::PATCH, POD, &image).await;
        eventually(|| async { container(&plane.get(POD).await)["restartCount"] == 1 }).await;
        let pod = plane.get(POD).await;
        assert_eq!(container(&pod)["image"], "docker.io/library/img:3");
        assert!(is_ready(&pod));
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn restart_policy_determines_restarts() {
    for (policy, crash, phase) in [
        ("Never", json!({"after": "1s"}), "Failed"),
        ("Never", json!({"after": "1s", "exitCode": 0}), "Succeeded"),
        (
            "OnFailure",
            json!({"after": "1s", "exitCode": 0}),
            "Succeeded",
        ),
        ("OnFailure", json!({"after": "1s"}), "Running"),
    ] {
        let crash: Crash = serde_json::from_value(crash).unwrap();
        let plane = plane(PodBehaviour::default().crash(crash)).await;
        let mut pod = crate::support::pod("p");
        pod["spec"]["restartPolicy"] = json!(policy);
        plane.create(PODS, &pod).await;
        tokio::time::sleep(Duration::from_secs(8)).await;
        let pod = plane.get(POD).await;
        assert_eq!(pod["status"]["phase"], phase, "{policy}");
        assert_eq!(
            container(&pod)["restartCount"],
            u32::from(phase == "Running")
        );
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn pod_with_an_occupied_host_port_is_rejected() {
    let plane = plane(PodBehaviour::default()).await;
    let with_port = |name: &str, node: &str, protocol: &str| {
        let mut pod = crate::support::pod(name);
        let port = json!({"containerPort": 80, "hostPort": 8080, "protocol": protocol});
        pod["spec"]["nodeName"] = node.into();
        pod["spec"]["containers"][0]["ports"] = json!([port]);
        pod
    };
    let phase = async |name: &str, wanted: &str| {
        let path = format!("{PODS}/{name}");
        eventually(|| async { plane.get(&path).await["status"]["phase"] == wanted }).await;
        plane.get(&path).await["status"].clone()
    };
    plane.create(PODS, &with_port("a", "node-0", "TCP")).await;
    phase("a", "Running").await;
    for (name, node, protocol) in [("other-node", "node-1", "TCP"), ("udp", "node-0", "UDP")] {
        plane.create(PODS, &with_port(name, node, protocol)).await;
        phase(name, "Running").await;
    }
    plane.create(PODS, &with_port("b", "node-0", "TCP")).await;
    let status = phase("b", "Failed").await;
    assert_eq!(status["reason"], "NodePorts");
    let conditions = status["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|c| c["type"] != "DisruptionTarget"));

    let path = format!("{PODS}/a");
    plane.call(Method::DELETE, &path, &json!({})).await;
    eventually(|| async { plane.code(&path).await == 404 }).await;
    plane.create(PODS, &with_port("c", "node-0", "TCP")).await;
    phase("c", "Running").await;
    plane.stop().await;
}
