//! Start and readiness of pods.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::actors::{Crash, Flap, Outcome, PodBehaviour};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{POD, PODS, after, condition, container, plane, seconds, started, waiting};
use crate::support::{eventually, is_ready};

#[tokio::test(start_paused = true)]
async fn status_matches_a_kubelets() {
    let (plane, _) = started(
        PodBehaviour::default()
            .start_delay(seconds(2))
            .ready_delay(seconds(3)),
    )
    .await;
    eventually(|| async { waiting(&plane.get(POD).await) == "ContainerCreating" }).await;
    let pod = plane.get(POD).await;
    assert_eq!(pod["status"]["phase"], "Pending");
    let state = container(&pod);
    assert_eq!(
        (&state["image"], &state["imageID"], &state["started"]),
        (&json!("img:1"), &json!(""), &json!(false))
    );
    assert!(state.get("containerID").is_none());
    assert_eq!(
        condition(&pod, "PodReadyToStartContainers")["status"],
        "False"
    );
    assert_eq!(condition(&pod, "Initialized")["status"], "True");
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let pod = plane.get(POD).await;
    let status = &pod["status"];
    let types: Vec<&Value> = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| &condition["type"])
        .collect();
    assert_eq!(
        types,
        [
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled"
        ]
    );
    assert_eq!(
        condition(&pod, "Ready"),
        &json!({
            "type": "Ready",
            "status": "True",
            "observedGeneration": 1,
            "lastProbeTime": null,
            "lastTransitionTime": "2026-01-01T00:00:05Z",
        })
    );
    assert_eq!(
        condition(&pod, "Initialized")["lastTransitionTime"],
        "2026-01-01T00:00:00Z"
    );
    let id = container(&pod)["containerID"].as_str().unwrap();
    assert_eq!(id.len(), "containerd://".len() + 64);
    let expected = json!([{
        "name": "c",
        "image": "docker.io/library/img:1",
        "imageID": container(&pod)["imageID"],
        "containerID": id,
        "ready": true,
        "started": true,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:02Z"}},
        "lastState": {},
        "resources": {},
    }]);
    assert_eq!(status["containerStatuses"], expected);
    assert_eq!(status["startTime"], "2026-01-01T00:00:00Z");
    assert_eq!(status["hostIPs"], json!([{"ip": status["hostIP"]}]));
    assert_eq!(status["podIPs"], json!([{"ip": status["podIP"]}]));
    assert_eq!(
        (&status["qosClass"], &status["observedGeneration"]),
        (&json!("BestEffort"), &json!(1))
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn readiness_flaps() {
    let (plane, start) = started(
        PodBehaviour::default().flap(
            Flap::default()
                .ready_for(seconds(10))
                .unready_for(seconds(5))
                .times(2),
        ),
    )
    .await;
    let mut seen = Vec::new();
    let mut ready = false;
    while start.elapsed() < Duration::from_secs(100) {
        let now = is_ready(&plane.get(POD).await);
        if now != ready {
            seen.push((start.elapsed().as_secs(), now));
            ready = now;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(
        seen,
        [(0, true), (10, false), (15, true), (25, false), (30, true)]
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_in_order() {
    let plane = plane(
        PodBehaviour::default()
            .init_delay(seconds(4))
            .crash(Crash::default().times(1).container("second")),
    )
    .await;
    let mut pod = crate::support::pod("p");
    pod["spec"]["initContainers"] = json!([
        {"name": "first", "image": "i"},
        {"name": "side", "image": "i", "restartPolicy": "Always"},
        {"name": "second", "image": "i"},
    ]);
    plane.create(PODS, &pod).await;
    let start = Instant::now();
    eventually(|| async { waiting(&plane.get(POD).await) == "PodInitializing" }).await;
    let pod = plane.get(POD).await;
    let condition_of = condition(&pod, "Initialized");
    assert_eq!(
        (&condition_of["reason"], &condition_of["message"]),
        (
            &json!("ContainersNotInitialized"),
            &json!("containers with incomplete status: [first side second]")
        )
    );
    eventually(|| async { plane.get(POD).await["status"]["initContainerStatuses"][2]["state"]["terminated"]["exitCode"] == 1 }).await;
    assert_eq!(start.elapsed().as_secs(), 4);
    assert_eq!(plane.get(POD).await["status"]["phase"], "Pending");
    let ready = after(start, || async { is_ready(&plane.get(POD).await) }).await;
    assert_eq!(ready, 9);
    let pod = plane.get(POD).await;
    let init = &pod["status"]["initContainerStatuses"];
    assert_eq!(init[0]["state"]["terminated"]["reason"], "Completed");
    assert_eq!(
        (&init[0]["ready"], &init[1]["started"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(init[2]["restartCount"], 1);
    assert!(condition(&pod, "Initialized").get("reason").is_none());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stuck_pod_starts_after_a_behaviour_change() {
    let (plane, _) = started(PodBehaviour::default().outcome(Outcome::NeverStarts)).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(waiting(&plane.get(POD).await), "ContainerCreating");
    plane
        .0
        .pods()
        .behave("default", "p", PodBehaviour::default())
        .await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn readiness_gates_control_pod_readiness() {
    let plane = plane(PodBehaviour::default()).await;
    let mut pod = crate::support::pod("p");
    pod["spec"]["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
    plane.create(PODS, &pod).await;
    eventually(|| async { container(&plane.get(POD).await)["ready"] == true }).await;
    let pod = plane.get(POD).await;
    assert_eq!(condition(&pod, "ContainersReady")["status"], "True");
    let ready = condition(&pod, "Ready");
    assert_eq!(
        (&ready["reason"], &ready["message"]),
        (
            &json!("ReadinessGatesNotReady"),
            &json!(
                "corresponding condition of pod readiness gate \"example.com/gate\" does not exist."
            )
        )
    );
    for (value, expected) in [("True", true), ("False", false), ("True", true)] {
        let gate = json!({"status": {"conditions": [
            {"type": "example.com/gate", "status": value},
        ]}});
        plane
            .call(Method::PATCH, &format!("{POD}/status"), &gate)
            .await;
        eventually(|| async { is_ready(&plane.get(POD).await) == expected }).await;
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn kubelet_keeps_conditions_set_by_others() {
    let (plane, _) = started(PodBehaviour::default()).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    plane
        .call(Method::PATCH, &format!("{POD}/status"), &unready)
        .await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!is_ready(&plane.get(POD).await));
    plane.stop().await;
}
