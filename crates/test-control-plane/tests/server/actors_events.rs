//! Optional events of kubelet and scheduler.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{
    Crash, ImagePullFailure, KubeletConfig, PodBehaviour, SchedulerConfig,
};
use serde_json::{Value, json};

use crate::support::{Plane, eventually, is_ready, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "/api/v1/namespaces/default/pods/p";
const EVENTS: &str = "/api/v1/namespaces/default/events";

async fn plane(behaviour: PodBehaviour) -> Plane {
    let config = KubeletConfig::new(behaviour);
    let builder = TestControlPlane::builder().kubelet(config).actor_events();
    Plane::new(builder.start().await)
}

/// Returns the events in the order of their creation.
async fn events(plane: &Plane) -> Vec<Value> {
    let list = plane.get(EVENTS).await;
    let mut events = list["items"].as_array().unwrap().clone();
    let version = |event: &Value| -> u64 {
        // An event's name ends with its time and never changes.
        let name = event["metadata"]["name"].as_str().unwrap();
        u64::from_str_radix(name.rsplit('.').next().unwrap(), 16).unwrap()
    };
    events.sort_by_key(version);
    events
}

/// Returns type, reason, part, count and message of each event.
async fn lines(plane: &Plane) -> Vec<String> {
    let text = |event: &Value, pointer: &str| {
        let text = event.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or("-").to_owned()
    };
    let line = |event: &Value| {
        let [kind, reason, message, part] =
            ["/type", "/reason", "/message", "/involvedObject/fieldPath"]
                .map(|pointer| text(event, pointer));
        format!("{kind} {reason} {part} {}x: {message}", event["count"])
    };
    events(plane).await.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn events_cover_a_pods_life() {
    let plane = plane(PodBehaviour::default()).await;
    let created = plane.create(PODS, &pod("p")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane.call(Method::DELETE, POD, &json!({})).await;
    eventually(|| async { plane.code(POD).await == 404 }).await;
    let part = "spec.containers{c}";
    assert_eq!(
        lines(&plane).await,
        [
            "Normal Scheduled - nullx: Successfully assigned default/p to node-0".to_owned(),
            format!(
                "Normal Pulled {part} 1x: Container image \"img:1\" already present on machine \
                 and can be accessed by the pod"
            ),
            format!("Normal Created {part} 1x: Container created"),
            format!("Normal Started {part} 1x: Container started"),
            format!("Normal Killing {part} 1x: Stopping container c"),
        ]
    );
    let events = events(&plane).await;
    let (scheduled, pulled) = (&events[0], &events[1]);
    assert_eq!(
        (
            &scheduled["reportingComponent"],
            &scheduled["action"],
            &scheduled["source"],
            &scheduled["firstTimestamp"],
        ),
        (
            &json!("default-scheduler"),
            &json!("Binding"),
            &json!({}),
            &Value::Null
        )
    );
    assert!(scheduled["eventTime"].is_string());
    assert_eq!(
        pulled["source"],
        json!({"component": "kubelet", "host": "node-0"})
    );
    for event in [scheduled, pulled] {
        assert_eq!(event["involvedObject"]["uid"], created["metadata"]["uid"]);
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn repeated_events_are_counted() {
    let plane = plane(PodBehaviour::default().crash(Crash::default())).await;
    plane.create(PODS, &pod("p")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let lines = lines(&plane).await;
    let restarts = plane.get(POD).await["status"]["containerStatuses"][0]["restartCount"].clone();
    let starts = restarts.as_u64().unwrap() + 1;
    let started = format!("Normal Started spec.containers{{c}} {starts}x: Container started");
    assert!(lines.contains(&started), "{lines:?}");
    let is_back_off = |line: &&String| line.starts_with("Warning BackOff spec.containers{c} ");
    assert_eq!(lines.iter().filter(is_back_off).count(), 1, "{lines:?}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn slow_image_pulls_are_reported() {
    let plane = plane(
        PodBehaviour::default()
            .image_pull_failure(ImagePullFailure::default().times(1).message("no such host")),
    )
    .await;
    plane.create(PODS, &pod("p")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let told: Vec<String> = lines(&plane).await.split_off(1);
    let part = "spec.containers{c}";
    assert_eq!(
        told,
        [
            format!("Normal Pulling {part} 2x: Pulling image \"img:1\""),
            format!("Warning Failed {part} 1x: Failed to pull image \"img:1\": no such host"),
            format!("Warning Failed {part} 1x: Error: ErrImagePull"),
            format!("Normal BackOff {part} 1x: Back-off pulling image \"img:1\""),
            format!("Warning Failed {part} 1x: Error: ImagePullBackOff"),
            format!(
                "Normal Pulled {part} 1x: Successfully pulled image \"img:1\" in 1s (1s including \
                 waiting). Image size: 8388608 bytes."
            ),
            format!("Normal Created {part} 1x: Container created"),
            format!("Normal Started {part} 1x: Container started"),
        ]
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unschedulable_pod_is_reported_once() {
    let scheduler: SchedulerConfig =
        serde_json::from_value(json!({"hold": [{"name": "p"}]})).unwrap();
    let builder = TestControlPlane::builder().scheduler(scheduler);
    let plane = Plane::new(builder.actor_events().start().await);
    plane.create(PODS, &pod("p")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let conditions = plane.get(POD).await["status"]["conditions"].clone();
    let message = conditions[0]["message"].as_str().unwrap().to_owned();
    let expected = format!("Warning FailedScheduling - nullx: {message}");
    assert_eq!(lines(&plane).await, [expected]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_are_off_by_default() {
    let plane = TestControlPlane::builder().all_actors().start().await;
    let plane = Plane::new(plane);
    plane.create(PODS, &pod("p")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    assert_eq!(lines(&plane).await, [""; 0]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn missing_objects_cause_one_event_each() {
    let plane = plane(PodBehaviour::default()).await;
    let mut waiting = pod("p");
    waiting["spec"]["volumes"] = json!([{"name": "v", "configMap": {"name": "absent"}}]);
    waiting["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "absent"}}]);
    plane.create(PODS, &waiting).await;
    let mount = "MountVolume.SetUp failed for volume \"v\" : configmap \"absent\" not found";
    let has = async |line: &str| lines(&plane).await.iter().any(|it| it == line);
    let failed_mount = format!("Warning FailedMount - 1x: {mount}");
    eventually(|| async { has(&failed_mount).await }).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    plane
        .create(maps, &json!({"metadata": {"name": "absent"}}))
        .await;
    let part = "spec.containers{c}";
    let failed = format!("Warning Failed {part} 1x: Error: secret \"absent\" not found");
    eventually(|| async { has(&failed).await }).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    plane
        .create(secrets, &json!({"metadata": {"name": "absent"}}))
        .await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let pulled =
        "Container image \"img:1\" already present on machine and can be accessed by the pod";
    assert_eq!(
        lines(&plane).await[1..],
        [
            failed_mount.as_str(),
            &format!("Normal Pulled {part} 2x: {pulled}"),
            &failed,
            &format!("Normal Created {part} 1x: Container created"),
            &format!("Normal Started {part} 1x: Container started"),
        ]
    );
}
