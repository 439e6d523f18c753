//! Rule matching, and orders to running pods.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::actors::{Crash, KubeletConfig, Outcome, PodBehaviour, PodMatcher};
use serde_json::{Value, json};

use super::{POD, PODS, container, plane_with, seconds, started};
use crate::support::{eventually, is_ready};

#[tokio::test(start_paused = true)]
async fn rules_match_pods_by_every_field() {
    let never = PodBehaviour::default().outcome(Outcome::NeverReady);
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
async fn ordered_crash_leaves_the_configured_crashes() {
    let (plane, _) = started(
        PodBehaviour::default().crash(Crash::default().after(seconds(5)).times(1).exit_code(3)),
    )
    .await;
    let exit_code = || async {
        let pod = plane.get(POD).await;
        container(&pod)["lastState"]["terminated"]["exitCode"].clone()
    };
    tokio::time::sleep(Duration::from_secs(2)).await;
    plane.0.pods().crash("default", "p", Crash::default()).await;
    eventually(|| async { exit_code().await == 1 }).await;
    // The restarted container crashes once as configured, then never again.
    eventually(|| async { exit_code().await == 3 }).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let pod = plane.get(POD).await;
    assert_eq!(container(&pod)["restartCount"], 2);
    assert!(is_ready(&pod));
    plane.stop().await;
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
    let killed = Crash::default().signal(9);
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
