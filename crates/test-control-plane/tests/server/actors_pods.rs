//! How pods behave on their nodes.

use std::future::Future;
use std::time::Duration;

use crate::support::{Plane, eventually, is_ready};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{
    Cause, Crash, Delay, Flap, ImagePullFailure, KubeletConfig, Outcome, Pattern, PodBehaviour,
    PodMatcher, Stop,
};
use serde_json::{Value, json};
use tokio::time::Instant;

const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "/api/v1/namespaces/default/pods/p";

fn seconds(seconds: u64) -> Delay {
    Duration::from_secs(seconds).into()
}

async fn plane_with(config: KubeletConfig) -> Plane {
    Plane::new(TestControlPlane::builder().kubelet(config).start().await)
}

async fn plane(behaviour: PodBehaviour) -> Plane {
    plane_with(KubeletConfig::new(behaviour)).await
}

/// A plane with one pod that behaves so, on its node since now.
async fn started(behaviour: PodBehaviour) -> (Plane, Instant) {
    let plane = plane(behaviour).await;
    plane.create(PODS, &crate::support::pod("p")).await;
    let now = Instant::now();
    (plane, now)
}

/// The seconds after which something holds.
async fn after<F: Future<Output = bool>>(start: Instant, holds: impl Fn() -> F) -> u64 {
    eventually(holds).await;
    start.elapsed().as_secs()
}

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

fn waiting(pod: &Value) -> &str {
    let reason = &container(pod)["state"]["waiting"]["reason"];
    reason.as_str().unwrap_or_default()
}

fn condition<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|c| c["type"] == name).unwrap()
}

async fn status_column(plane: &Plane) -> String {
    let server = plane.0.server();
    let request = http::Request::builder()
        .uri(POD)
        .header("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
        .body(http_body_util::Full::<bytes::Bytes>::default())
        .unwrap();
    let reply = server.serve(request).await.unwrap();
    let body = http_body_util::BodyExt::collect(reply.into_body()).await;
    let table: Value = serde_json::from_slice(&body.unwrap().to_bytes()).unwrap();
    let cells = &table["rows"][0]["cells"];
    format!("{} {} {}", cells[1], cells[2], cells[3]).replace('"', "")
}

#[tokio::test(start_paused = true)]
async fn a_status_has_the_form_of_a_kubelets() {
    let (plane, _) = started(PodBehaviour {
        start_delay: seconds(2),
        ready_delay: seconds(3),
        ..PodBehaviour::default()
    })
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
async fn a_container_that_crashes_is_restarted_ever_later() {
    let (plane, start) = started(PodBehaviour {
        crash: Some(Crash {
            after: seconds(5),
            exit_code: Some(3),
            ..Crash::default()
        }),
        ..PodBehaviour::default()
    })
    .await;
    let restarts = |wanted: u32| {
        let plane = &plane;
        move || async move { container(&plane.get(POD).await)["restartCount"] == wanted }
    };
    eventually(|| async { status_column(&plane).await == "0/1 Error 0" }).await;
    assert_eq!(start.elapsed().as_secs(), 5);
    // The first restart comes at once, then the back-off counts from the end.
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
    // 6, then each 5 seconds of running and a back-off of 10, 20, 40 … 300 seconds later.
    assert_eq!(times, [6, 21, 46, 91, 176, 341, 646, 951]);
    assert_eq!(
        condition(&plane.get(POD).await, "Initialized")["status"],
        "True"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_container_may_crash_so_many_times_and_then_be_fine() {
    let (plane, _) = started(PodBehaviour {
        crash: Some(Crash {
            times: Some(3),
            reason: "OOMKilled".to_owned(),
            ..Crash::default()
        }),
        ..PodBehaviour::default()
    })
    .await;
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
async fn an_image_that_can_not_be_pulled_is_tried_again() {
    let (plane, start) = started(PodBehaviour {
        image_pull_failure: Some(ImagePullFailure {
            times: Some(3),
            ..ImagePullFailure::default()
        }),
        ..PodBehaviour::default()
    })
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
    // Tries at 0, 10, 30 and 70 seconds; the last one works.
    let ready = after(start, || async { is_ready(&plane.get(POD).await) }).await;
    assert_eq!(ready, 70);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn another_image_ends_the_trouble_at_once() {
    for pattern in [None, Some(Pattern::new("*:1"))] {
        let (plane, start) = started(PodBehaviour {
            image_pull_failure: Some(ImagePullFailure {
                image: pattern,
                ..ImagePullFailure::default()
            }),
            ..PodBehaviour::default()
        })
        .await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        let image = json!({"spec": {"containers": [{"name": "c", "image": "img:2"}]}});
        plane.call(Method::PATCH, POD, &image).await;
        let ready = after(start, || async { is_ready(&plane.get(POD).await) }).await;
        assert_eq!(ready, 100);
        // A container that runs is restarted with another image.
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
async fn readiness_comes_and_goes() {
    let (plane, start) = started(PodBehaviour {
        flap: Some(Flap {
            ready_for: seconds(10),
            unready_for: seconds(5),
            times: Some(2),
        }),
        ..PodBehaviour::default()
    })
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
async fn init_containers_run_one_after_the_other() {
    let plane = plane(PodBehaviour {
        init_delay: seconds(4),
        crash: Some(Crash {
            times: Some(1),
            container: Some("second".to_owned()),
            ..Crash::default()
        }),
        ..PodBehaviour::default()
    })
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
async fn a_pod_that_never_starts_can_be_told_to() {
    let (plane, _) = started(PodBehaviour {
        outcome: Outcome::NeverStarts,
        ..PodBehaviour::default()
    })
    .await;
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
async fn pods_end_for_a_reason() {
    for (cause, failed, reason, code) in [
        (Cause::Exited, true, Value::Null, 1),
        (Cause::Evicted, true, json!("Evicted"), 137),
        (Cause::NodeShutdown, true, json!("Terminated"), 143),
        (Cause::Preempted, true, json!("Preempting"), 137),
        (Cause::NodeShutdown, false, json!("Terminated"), 0),
        (Cause::Exited, false, Value::Null, 0),
    ] {
        let (plane, _) = started(PodBehaviour::default()).await;
        eventually(|| async { is_ready(&plane.get(POD).await) }).await;
        if failed {
            plane.0.pods().fail("default", "p", cause).await;
        } else {
            plane.0.pods().succeed("default", "p", cause).await;
        }
        let phase = if failed { "Failed" } else { "Succeeded" };
        eventually(|| async { plane.get(POD).await["status"]["phase"] == phase }).await;
        let pod = plane.get(POD).await;
        assert_eq!(pod["status"]["reason"], reason);
        let end = &container(&pod)["state"]["terminated"];
        assert_eq!(end["exitCode"], code);
        let why = if failed { "PodFailed" } else { "PodCompleted" };
        assert_eq!(condition(&pod, "Ready")["reason"], why);
        if cause != Cause::Exited {
            let target = condition(&pod, "DisruptionTarget");
            assert_eq!(
                (&target["status"], &target["reason"], &target["message"]),
                (
                    &json!("True"),
                    &json!("TerminationByKubelet"),
                    &pod["status"]["message"]
                )
            );
        }
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_container_does_when_told_to_stop() {
    for (behaviour, lasts, code) in [
        (PodBehaviour::default(), 0, 0),
        (
            PodBehaviour {
                stop_delay: seconds(8),
                pre_stop_delay: seconds(4),
                stop_exit_code: 143,
                ..PodBehaviour::default()
            },
            12,
            143,
        ),
        (
            PodBehaviour {
                stop_delay: seconds(100),
                ..PodBehaviour::default()
            },
            30,
            137,
        ),
        (
            PodBehaviour {
                stop: Stop::IgnoresSigterm,
                ..PodBehaviour::default()
            },
            30,
            137,
        ),
    ] {
        let (plane, _) = started(behaviour).await;
        eventually(|| async { is_ready(&plane.get(POD).await) }).await;
        let server = plane.0.server();
        let revision = server.store().revision();
        plane.call(Method::DELETE, POD, &json!({})).await;
        let start = Instant::now();
        let gone = after(start, || async { plane.code(POD).await == 404 }).await;
        assert_eq!(gone, lasts);
        let (_, events) = server.store().events_after(revision, 10).unwrap();
        let last = events.last().unwrap().object.value();
        assert_eq!(container(&last)["state"]["terminated"]["exitCode"], code);
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        assert_eq!(last["status"]["phase"], phase);
        assert_eq!(condition(&last, "Ready")["status"], "False");
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_may_fail_to_stop_a_pod() {
    let (plane, _) = started(PodBehaviour {
        stop: Stop::Hangs,
        ..PodBehaviour::default()
    })
    .await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane.call(Method::DELETE, POD, &json!({})).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(plane.is_deleting(POD).await);
    assert_eq!(status_column(&plane).await, "1/1 Terminating 0");
    plane
        .0
        .pods()
        .behave("default", "p", PodBehaviour::default())
        .await;
    eventually(|| async { plane.code(POD).await == 404 }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_shorter_grace_period_hurries_a_pod() {
    let (plane, start) = started(PodBehaviour {
        stop: Stop::IgnoresSigterm,
        ..PodBehaviour::default()
    })
    .await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane
        .0
        .pods()
        .delete("default", "p", Some(1000))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    plane
        .0
        .pods()
        .delete("default", "p", Some(5))
        .await
        .unwrap();
    let gone = after(start, || async { plane.code(POD).await == 404 }).await;
    assert_eq!(gone, 25);
    let err = plane
        .0
        .pods()
        .delete("default", "p", None)
        .await
        .unwrap_err();
    assert_eq!(
        err.to_string(),
        "deleting pod default/p: 404 pods \"p\" not found"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn readiness_gates_close_and_open_a_pod() {
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
async fn rules_tell_pods_apart() {
    let never = PodBehaviour {
        outcome: Outcome::NeverReady,
        ..PodBehaviour::default()
    };
    let matcher = |json: Value| -> PodMatcher { serde_json::from_value(json).unwrap() };
    let config = KubeletConfig::default()
        .when(matcher(json!({"ordinals": [1]})), never.clone())
        .when(matcher(json!({"image": "*:bad"})), never.clone())
        .when(matcher(json!({"name": "once", "first": 1})), never);
    let plane = plane_with(config).await;
    let ready = |name: &'static str| {
        let plane = &plane;
        async move { is_ready(&plane.get(&format!("{PODS}/{name}")).await) }
    };
    for name in ["web-0", "web-1", "once"] {
        plane.create(PODS, &crate::support::pod(name)).await;
    }
    let mut bad = crate::support::pod("web-2");
    bad["spec"]["containers"][0]["image"] = json!("img:bad");
    plane.create(PODS, &bad).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    for (name, expected) in [
        ("web-0", true),
        ("web-1", false),
        ("web-2", false),
        ("once", false),
    ] {
        assert_eq!(ready(name).await, expected, "{name}");
    }
    let once = format!("{PODS}/once");
    plane.call(Method::DELETE, &once, &json!({})).await;
    eventually(|| async { plane.code(&once).await == 404 }).await;
    plane.create(PODS, &crate::support::pod("once")).await;
    eventually(|| async { ready("once").await }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_policy_decides_what_follows_an_exit() {
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
        let plane = plane(PodBehaviour {
            crash: serde_json::from_value(crash).unwrap(),
            ..PodBehaviour::default()
        })
        .await;
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
async fn actions_reach_a_running_pod() {
    let (plane, _) = started(PodBehaviour::default()).await;
    let pods = plane.0.pods();
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let running = pods.running().await;
    assert_eq!((running.len(), running[0].name.as_str()), (1, "p"));
    pods.set_ready("default", "p", false).await;
    eventually(|| async { !is_ready(&plane.get(POD).await) }).await;
    pods.set_ready("default", "p", true).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let killed = Crash {
        signal: Some(9),
        ..Crash::default()
    };
    pods.crash("default", "p", killed).await;
    eventually(|| async { container(&plane.get(POD).await)["restartCount"] == 1 }).await;
    let pod = plane.get(POD).await;
    let last = &container(&pod)["lastState"]["terminated"];
    assert_eq!(
        (&last["signal"], &last["exitCode"]),
        (&json!(9), &json!(137))
    );
    plane
        .call(Method::DELETE, POD, &json!({"gracePeriodSeconds": 0}))
        .await;
    eventually(|| async { pods.running().await.is_empty() }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_test_may_set_a_condition_itself() {
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
