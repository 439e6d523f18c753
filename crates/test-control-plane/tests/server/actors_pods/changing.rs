//! Changes of running pods and of their behaviour.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{
    Delay, ImagePullFailure, KubeletConfig, Outcome, PodBehaviour, PodMatcher, PodRule,
    ReadinessStep, Stop,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{POD, PODS, after, condition, container, plane, plane_with, seconds, started, waiting};
use crate::support::{Plane, call_patch, eventually, is_ready, pod};

async fn patch(plane: &Plane, patch: Value) {
    call_patch(plane, POD, &patch).await;
}

async fn annotate(plane: &Plane, name: &str, value: &str) {
    let name = format!("kubelet.test-control-plane/{name}");
    patch(plane, json!({"metadata": {"annotations": {name: value}}})).await;
}

async fn ready(plane: &Plane) -> bool {
    is_ready(&plane.get(POD).await)
}

#[tokio::test(start_paused = true)]
async fn changed_delay_counts_from_its_start() {
    let hour = Duration::from_secs(3600);
    for (name, behaviour) in [
        ("start-delay", PodBehaviour::default().start_delay(hour)),
        ("ready-delay", PodBehaviour::default().ready_delay(hour)),
    ] {
        let (plane, start) = started(behaviour.clone()).await;
        sleep(Duration::from_secs(10)).await;
        annotate(&plane, name, "25s").await;
        assert_eq!(after(start, || ready(&plane)).await, 25, "{name}");
        plane.stop().await;

        let (plane, start) = started(behaviour).await;
        sleep(Duration::from_secs(10)).await;
        annotate(&plane, name, "3s").await;
        assert_eq!(after(start, || ready(&plane)).await, 10, "{name}");
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn init_delay_can_be_changed() {
    let config = KubeletConfig::new(PodBehaviour::default().init_delay(Duration::from_secs(3600)));
    let plane = plane_with(config).await;
    let mut body = pod("p");
    body["spec"]["initContainers"] = json!([{"name": "i", "image": "img:1"}]);
    plane.create(PODS, &body).await;
    let start = Instant::now();
    sleep(Duration::from_secs(10)).await;
    annotate(&plane, "init-delay", "20s").await;
    assert_eq!(after(start, || ready(&plane)).await, 20);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn repaired_image_is_pulled_immediately() {
    let (plane, start) =
        started(PodBehaviour::default().image_pull_failure(ImagePullFailure::default())).await;
    // By then the back-off is five minutes.
    sleep(Duration::from_secs(1000)).await;
    assert_eq!(waiting(&plane.get(POD).await), "ImagePullBackOff");
    annotate(&plane, "image-pull-failure", "{times: 0}").await;
    assert_eq!(after(start, || ready(&plane)).await, 1000);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn hanging_pod_stops_after_a_behaviour_change() {
    let (plane, start) = started(
        PodBehaviour::default()
            .stop(Stop::Hangs)
            .stop_delay(seconds(8)),
    )
    .await;
    eventually(|| ready(&plane)).await;
    patch(
        &plane,
        json!({"metadata": {"finalizers": ["example.com/look"]}}),
    )
    .await;
    plane.call(Method::DELETE, POD, &json!({})).await;
    sleep(Duration::from_secs(5)).await;
    annotate(&plane, "stop", "obeys").await;
    let is_over = || async { plane.get(POD).await["status"]["phase"] == "Succeeded" };
    assert_eq!(after(start, is_over).await, 8);
    let pod = plane.get(POD).await;
    assert_eq!(container(&pod)["state"]["terminated"]["exitCode"], 0);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn running_stop_can_be_shortened_and_extended() {
    for (delay, gone_after) in [("6s", 6), ("20s", 20), ("1s", 4), ("100s", 30)] {
        let (plane, _) = started(PodBehaviour::default().stop_delay(seconds(10))).await;
        eventually(|| ready(&plane)).await;
        plane.call(Method::DELETE, POD, &json!({})).await;
        let start = Instant::now();
        sleep(Duration::from_secs(4)).await;
        annotate(&plane, "stop-delay", delay).await;
        let is_gone = || async { plane.code(POD).await == 404 };
        assert_eq!(after(start, is_gone).await, gone_after, "{delay}");
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn refresh_calls_the_closure_again() {
    let broken = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&broken);
    let config = KubeletConfig::default().rule(move |_| {
        asked
            .load(Ordering::Relaxed)
            .then(|| PodBehaviour::default().outcome(Outcome::NeverReady))
    });
    let plane = plane_with(config).await;
    plane.create(PODS, &pod("p")).await;
    sleep(Duration::from_secs(60)).await;
    broken.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(60)).await;
    assert!(!ready(&plane).await);
    plane.0.pods().refresh().await;
    eventually(|| ready(&plane)).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn rules_can_change_while_pods_run() {
    let plane = plane_with(KubeletConfig::default()).await;
    for (name, revision) in [("web-0", "web-1"), ("web-1", "web-2")] {
        let mut body = pod(name);
        body["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
        plane.create(PODS, &body).await;
    }
    let is_ready = |name: &'static str| {
        let plane = &plane;
        async move { is_ready(&plane.get(&format!("{PODS}/{name}")).await) }
    };
    eventually(|| async { is_ready("web-0").await && is_ready("web-1").await }).await;
    let pods = plane.0.pods();
    let rule = PodRule::default()
        .pods(PodMatcher::default().revision("web-2"))
        .behaviour(PodBehaviour::default().outcome(Outcome::NeverReady));
    let id = pods.add_rule(rule).await;
    eventually(|| async { !is_ready("web-1").await }).await;
    assert!(is_ready("web-0").await);
    pods.remove_rule(id).await;
    eventually(|| is_ready("web-1")).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn weights_distribute_pods_among_rules() {
    let rule = |outcome, weight| {
        PodRule::default()
            .behaviour(PodBehaviour::default().outcome(outcome))
            .weight(weight)
    };
    let config =
        KubeletConfig::default().rules([rule(Outcome::Ready, 3), rule(Outcome::NeverReady, 1)]);
    let builder = TestControlPlane::builder().seed(7).kubelet(config);
    let plane = Plane::new(builder.start().await);
    for i in 0..100 {
        plane.create(PODS, &pod(&format!("p-{i}"))).await;
    }
    sleep(Duration::from_secs(10)).await;
    let list = plane.get(PODS).await;
    let ready = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|pod| is_ready(pod));
    let ready = ready.count();
    assert!((60..90).contains(&ready), "{ready}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn readiness_follows_a_script() {
    let (plane, start) = started(PodBehaviour::default().ready_delay(seconds(1)).readiness([
        ReadinessStep::Ready(seconds(5)),
        ReadinessStep::Unready(seconds(2)),
        ReadinessStep::Ready(seconds(10)),
        ReadinessStep::Unready(Delay::ZERO),
    ]))
    .await;
    let unready = || async { !ready(&plane).await };
    let mut times = vec![after(start, || ready(&plane)).await];
    times.push(after(start, unready).await);
    times.push(after(start, || ready(&plane)).await);
    times.push(after(start, unready).await);
    assert_eq!(times, [1, 6, 8, 18]);
    sleep(Duration::from_secs(3600)).await;
    assert!(!ready(&plane).await);
    // A new script starts from its beginning.
    annotate(&plane, "readiness", "[{ready: 3s}, {unready: 0s}]").await;
    eventually(|| ready(&plane)).await;
    eventually(unready).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn new_image_restarts_no_completed_container() {
    let plane = plane_with(KubeletConfig::default()).await;
    let mut body = pod("p");
    body["spec"]["initContainers"] = json!([{"name": "i", "image": "img:1"}]);
    plane.create(PODS, &body).await;
    eventually(|| ready(&plane)).await;
    patch(
        &plane,
        json!({"spec": {"initContainers": [{"name": "i", "image": "img:2"}]}}),
    )
    .await;
    sleep(Duration::from_secs(10)).await;
    let found = plane.get(POD).await;
    assert_eq!(found["status"]["phase"], "Running");
    assert_eq!(
        found["status"]["initContainerStatuses"][0]["restartCount"],
        0
    );
    assert_eq!(condition(&found, "Initialized")["status"], "True");
    plane.stop().await;

    let plane = plane_with(KubeletConfig::new(
        PodBehaviour::default().outcome(Outcome::Succeeds),
    ))
    .await;
    let mut body = pod("p");
    body["spec"]["restartPolicy"] = json!("Never");
    plane.create(PODS, &body).await;
    let phase = || async { plane.get(POD).await["status"]["phase"].clone() };
    eventually(|| async { phase().await == "Succeeded" }).await;
    patch(
        &plane,
        json!({"spec": {"containers": [{"name": "c", "image": "img:2"}]}}),
    )
    .await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(phase().await, "Succeeded");
    assert!(plane.0.pods().running().await.is_empty());
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn new_image_does_not_prevent_a_stop() {
    let (plane, _) = started(PodBehaviour::default().stop_delay(seconds(10))).await;
    eventually(|| ready(&plane)).await;
    plane.call(Method::DELETE, POD, &json!({})).await;
    let start = Instant::now();
    sleep(Duration::from_secs(2)).await;
    patch(
        &plane,
        json!({"spec": {"containers": [{"name": "c", "image": "img:2"}]}}),
    )
    .await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(container(&plane.get(POD).await)["restartCount"], 0);
    assert_eq!(
        after(start, || async { plane.code(POD).await == 404 }).await,
        10
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn status_has_the_observed_generation() {
    let plane = plane(PodBehaviour::default()).await;
    let mut body = pod("p");
    body["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    plane.create(PODS, &body).await;
    eventually(|| ready(&plane)).await;
    assert_eq!(plane.get(POD).await["status"]["observedGeneration"], 1);
    patch(&plane, json!({"spec": {"activeDeadlineSeconds": 100_000}})).await;
    eventually(|| async { plane.get(POD).await["status"]["observedGeneration"] == 2 }).await;

    let debugger = json!([{"name": "debugger", "image": "busybox"}]);
    let path = format!("{POD}/ephemeralcontainers");
    call_patch(
        &plane,
        &path,
        &json!({"spec": {"ephemeralContainers": debugger}}),
    )
    .await;
    let attached = || async {
        let pod = plane.get(POD).await;
        pod["status"]["ephemeralContainerStatuses"][0]["state"]["running"].is_object()
    };
    eventually(attached).await;

    let resources = json!({"requests": {"cpu": "2"}});
    let spec = json!({"containers": [{"name": "c", "resources": resources}]});
    call_patch(&plane, &format!("{POD}/resize"), &json!({"spec": spec})).await;
    eventually(|| async { container(&plane.get(POD).await)["resources"] == resources }).await;
    assert_eq!(container(&plane.get(POD).await)["restartCount"], 0);
    plane.stop().await;
}

/// The type and the reason of the condition of a resize.
async fn resize_condition(plane: &Plane) -> Option<(String, String)> {
    let pod = plane.get(POD).await;
    let mut conditions = pod["status"]["conditions"].as_array()?.iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = conditions.find(|it| text(&it["type"]).starts_with("PodResize"))?;
    Some((text(&found["type"]), text(&found["reason"])))
}

#[tokio::test(start_paused = true)]
async fn resizes_wait_for_their_node() {
    let plane = plane(PodBehaviour::default()).await;
    let mut body = pod("p");
    body["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    plane.create(PODS, &body).await;
    eventually(|| ready(&plane)).await;
    annotate(&plane, "resize", "deferred").await;
    annotate(&plane, "resize-delay", "30s").await;
    let resources = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let spec = json!({"containers": [{"name": "c", "resources": resources("2")}]});
    call_patch(&plane, &format!("{POD}/resize"), &json!({"spec": spec})).await;
    let has = async |kind: &str, reason: &str| {
        let wanted = (kind.to_owned(), reason.to_owned());
        eventually(|| async { resize_condition(&plane).await.as_ref() == Some(&wanted) }).await;
        let pod = plane.get(POD).await;
        assert_eq!(
            container(&pod)["resources"],
            resources("1"),
            "{kind} {reason}"
        );
    };
    has("PodResizePending", "Deferred").await;
    annotate(&plane, "resize", "infeasible").await;
    has("PodResizePending", "Infeasible").await;
    annotate(&plane, "resize", "applies").await;
    has("PodResizeInProgress", "").await;
    let start = Instant::now();
    let resized = || async { container(&plane.get(POD).await)["resources"] == resources("2") };
    let took = after(start, resized).await;
    assert!((25..=30).contains(&took), "{took}");
    assert_eq!(resize_condition(&plane).await, None);
    assert_eq!(container(&plane.get(POD).await)["restartCount"], 0);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn active_deadline_ends_a_pod() {
    let plane = plane_with(KubeletConfig::default()).await;
    let mut body = pod("p");
    body["spec"]["activeDeadlineSeconds"] = json!(3600);
    plane.create(PODS, &body).await;
    let start = Instant::now();
    sleep(Duration::from_secs(10)).await;
    patch(&plane, json!({"spec": {"activeDeadlineSeconds": 40}})).await;
    let failed = || async { plane.get(POD).await["status"]["reason"] == "DeadlineExceeded" };
    assert_eq!(after(start, failed).await, 40);
    let pod = plane.get(POD).await;
    assert_eq!(pod["status"]["phase"], "Failed");
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|c| c["type"] != "DisruptionTarget"));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn node_registered_again_adopts_its_pods() {
    let (plane, _) = started(PodBehaviour::default()).await;
    eventually(|| ready(&plane)).await;
    let crash = kube_test_control_plane::actors::Crash::default();
    plane.0.pods().crash("default", "p", crash).await;
    eventually(|| async { container(&plane.get(POD).await)["restartCount"] == 1 }).await;
    eventually(|| ready(&plane)).await;
    let before = plane.get(POD).await;
    let node = before["spec"]["nodeName"].as_str().unwrap().to_owned();
    sleep(Duration::from_secs(100)).await;
    plane.0.nodes().delete(&node).await.unwrap();
    plane.0.nodes().add(&node, 10).await.unwrap();
    sleep(Duration::from_secs(10)).await;
    // The next write includes the remembered state.
    plane.0.pods().set_ready("default", "p", false).await;
    eventually(|| async { !ready(&plane).await }).await;
    let after = plane.get(POD).await;
    assert_eq!(after["status"]["startTime"], before["status"]["startTime"]);
    for member in ["restartCount", "lastState", "state", "containerID"] {
        assert_eq!(
            container(&after)[member],
            container(&before)[member],
            "{member}"
        );
    }
    let times = |pod: &Value| condition(pod, "Initialized")["lastTransitionTime"].clone();
    assert_eq!(times(&after), times(&before));
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn host_network_pods_have_the_nodes_address() {
    let plane = plane_with(KubeletConfig::default()).await;
    let mut body = pod("p");
    body["spec"]["hostNetwork"] = json!(true);
    plane.create(PODS, &body).await;
    eventually(|| ready(&plane)).await;
    let status = &plane.get(POD).await["status"];
    assert_eq!(status["podIP"], status["hostIP"]);
    plane.stop().await;
}
