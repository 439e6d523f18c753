//! Ends of pods, on their own and by deletion.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::actors::{Cause, PodBehaviour, Stop};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{POD, after, condition, container, seconds, started, status_column};
use crate::support::{call_patch, eventually, is_ready};

#[tokio::test(start_paused = true)]
async fn ended_pods_report_their_cause() {
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
async fn containers_react_to_sigterm_as_configured() {
    for (behaviour, lasts, code) in [
        (PodBehaviour::default(), 0, 0),
        (
            PodBehaviour::default()
                .stop_delay(seconds(8))
                .pre_stop_delay(seconds(4))
                .stop_exit_code(143),
            12,
            143,
        ),
        (PodBehaviour::default().stop_delay(seconds(100)), 30, 137),
        (PodBehaviour::default().stop(Stop::IgnoresSigterm), 30, 137),
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
async fn hanging_pod_stays_terminating() {
    let (plane, _) = started(PodBehaviour::default().stop(Stop::Hangs)).await;
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
async fn shorter_grace_period_shortens_the_stop() {
    let (plane, start) = started(PodBehaviour::default().stop(Stop::IgnoresSigterm)).await;
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
async fn pod_held_by_a_finalizer_uses_its_own_grace_period() {
    let (plane, _) = started(
        PodBehaviour::default()
            .stop_delay(seconds(8))
            .stop_exit_code(3),
    )
    .await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    call_patch(&plane, POD, &hold).await;
    let start = Instant::now();
    plane
        .0
        .pods()
        .delete("default", "p", Some(0))
        .await
        .unwrap();
    let failed = || async { plane.get(POD).await["status"]["phase"] == "Failed" };
    assert_eq!(after(start, failed).await, 8);
    let pod = plane.get(POD).await;
    assert_eq!(container(&pod)["state"]["terminated"]["exitCode"], 3);
    plane.stop().await;
}
