//! Pods that run into the same trouble again and again, as `why` explains them.

use jiff::{SignedDuration, Timestamp};
use kube_test_control_plane::actors::Crash;
use serde_json::{Value, json};

use crate::kubectl::kubectl;
use crate::stage::{SET, SETS, Stage, behave, complete, resolve, web, why};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A set whose pods behave like this.
fn behaving(replicas: u32, annotations: &Value) -> Value {
    let mut set = web(replicas);
    let annotations = annotations.as_object().expect("annotations").iter();
    let annotations = annotations
        .map(|(name, value)| (format!("kubelet.test-control-plane/{name}"), value.clone()));
    let annotations: serde_json::Map<String, Value> = annotations.collect();
    set["spec"]["template"]["metadata"]["annotations"] = Value::Object(annotations);
    set
}

/// Creates a set and lets time pass.
async fn with(set: &Value, seconds: u64) -> Stage {
    let stage = Stage::start().await;
    stage.create(SETS, set).await;
    stage.pass(seconds).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn flapping_pod_is_stuck_in_every_phase() {
    for policy in ["OrderedReady", "Parallel"] {
        let mut set = web(3);
        set["spec"]["minReadySeconds"] = json!(8);
        set["spec"]["podManagementPolicy"] = json!(policy);
        let stage = with(&set, 90).await;
        let flap = json!({"kubelet.test-control-plane/flap": "{readyFor: 5s, unreadyFor: 2s}"});
        let template = json!({"metadata": {"annotations": flap}});
        stage
            .patch(SET, &json!({"spec": {"template": template}}))
            .await;
        stage.pass(36).await;
        for second in 0..14 {
            let answer = why(&stage).await;
            assert_eq!(answer["cause"], "flapping", "{policy} {second}: {answer:#}");
            assert_eq!(answer["state"], "stuck", "{answer:#}");
            let since: Timestamp = answer["since"]
                .as_str()
                .expect("a time")
                .parse()
                .expect("a time");
            let pod = stage.get(&format!("{PODS}/web-2")).await;
            let created = pod["metadata"]["creationTimestamp"].clone();
            assert_eq!(json!(since.to_string()), created, "{answer:#}");
            stage.pass(1).await;
        }
        resolve(&stage, "flapping", "rollout undo statefulset/web").await;
    }
}

/// Without the kubelet's events, the containers' start still shows that the pod was ready before.
#[tokio::test(start_paused = true)]
async fn flapping_needs_no_events() {
    let mut set = behaving(1, &json!({"flap": "{readyFor: 5s, unreadyFor: 2s}"}));
    set["spec"]["minReadySeconds"] = json!(8);
    let stage = Stage::without_events().await;
    stage.create(SETS, &set).await;
    stage.pass(40).await;
    for second in 0..14 {
        let answer = why(&stage).await;
        assert_eq!(answer["cause"], "flapping", "{second}: {answer:#}");
        assert_eq!(answer["resolve"], json!([]), "{answer:#}");
        stage.pass(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn slow_start_is_no_flapping() {
    let mut set = behaving(2, &json!({"start-delay": "50s"}));
    set["spec"]["minReadySeconds"] = json!(30);
    let probe = json!({"httpGet": {"port": 80}, "periodSeconds": 5});
    set["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = probe;
    let stage = Stage::start().await;
    stage.create(SETS, &set).await;
    for _ in 0..20 {
        stage.pass(5).await;
        let answer = why(&stage).await;
        assert_ne!(answer["state"], "stuck", "{answer:#}");
    }
}

/// With a probe, gaps between its failures show that the pod was ready before.
#[tokio::test(start_paused = true)]
async fn failures_of_a_probe_tell_flapping_from_a_slow_start() {
    let mut set = web(1);
    set["spec"]["minReadySeconds"] = json!(900);
    let probe = json!({"httpGet": {"port": 80}, "periodSeconds": 5});
    set["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = probe;
    for (failures, cause) in [(12, "flapping"), (57, "min-ready-seconds")] {
        let stage = with(&set, 300).await;
        let pod = stage.get(&format!("{PODS}/web-0")).await;
        let ready = json!({"type": "Ready", "status": "True",
            "lastTransitionTime": "2026-03-01T12:04:55Z"});
        let status = json!({"status": {"conditions": [ready]}});
        stage.patch(&format!("{PODS}/web-0/status"), &status).await;
        let event = json!({
            "metadata": {"name": "unhealthy"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web-0",
                "uid": pod["metadata"]["uid"]},
            "reason": "Unhealthy", "message": "Readiness probe failed: connection refused",
            "type": "Warning", "count": failures,
            "firstTimestamp": "2026-03-01T12:00:05Z", "lastTimestamp": "2026-03-01T12:04:50Z",
        });
        stage
            .create("/api/v1/namespaces/default/events", &event)
            .await;
        let answer = why(&stage).await;
        assert_eq!(answer["cause"], cause, "{failures}: {answer:#}");
    }
}

/// A pod with a probe that was slow at first, then ready, and lost its readiness once.
#[tokio::test(start_paused = true)]
async fn single_loss_waits_for_recovery() {
    let stage = complete().await;
    stage
        .plane
        .pods()
        .set_ready("default", "web-1", false)
        .await;
    stage.pass(30).await;
    let answer = why(&stage).await;
    assert_eq!(answer["state"], "waiting", "{answer:#}");
}

#[tokio::test(start_paused = true)]
async fn evicted_pods_are_replaced_in_a_loop() {
    let set = behaving(2, &json!({"outcome": "fails", "cause": "evicted"}));
    let stage = with(&set, 12).await;
    for pause in [1, 1, 1, 1, 1, 1, 7, 7, 30, 60] {
        let answer = why(&stage).await;
        assert_eq!(answer["cause"], "replaced-in-a-loop", "{answer:#}");
        assert_eq!(answer["state"], "stuck", "{answer:#}");
        assert_eq!(answer["resolve"], json!([]), "{answer:#}");
        let text = answer["text"].as_str().expect("a text");
        assert!(
            text.contains("Evicted: The node was low on resource"),
            "{text}"
        );
        stage.pass(pause).await;
    }
}

#[tokio::test(start_paused = true)]
async fn loop_of_a_new_revision_is_undone() {
    for (outcome, cause) in [
        ("fails", "evicted"),
        ("fails", "exited"),
        ("succeeds", "exited"),
    ] {
        let stage = complete().await;
        let annotations = json!({
            "kubelet.test-control-plane/outcome": outcome,
            "kubelet.test-control-plane/cause": cause,
            "kubelet.test-control-plane/ready-delay": "5s",
        });
        let template = json!({"metadata": {"annotations": annotations}});
        stage
            .patch(SET, &json!({"spec": {"template": template}}))
            .await;
        stage.pass(120).await;
        resolve(&stage, "replaced-in-a-loop", "rollout undo statefulset/web").await;
    }
}

#[tokio::test(start_paused = true)]
async fn single_eviction_and_rollouts_are_no_loop() {
    let stage = complete().await;
    let status = json!({"status": {"phase": "Failed", "reason": "Evicted"}});
    stage.patch(&format!("{PODS}/web-2/status"), &status).await;
    for _ in 0..20 {
        let answer = why(&stage).await;
        assert_ne!(answer["state"], "stuck", "{answer:#}");
        stage.pass(1).await;
    }
    for image in ["app:2", "app:3", "app:4", "app:5"] {
        stage.set_image(image).await;
        for _ in 0..10 {
            stage.pass(2).await;
            let answer = why(&stage).await;
            assert_ne!(answer["state"], "stuck", "{answer:#}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn container_that_ends_with_exit_code_0_is_named() {
    let stage = complete().await;
    let crash = "{after: 20s, exitCode: 0, reason: Completed}";
    behave(&stage, "crash", json!(crash)).await;
    resolve(
        &stage,
        "restart-loop",
        "ends again and again with exit code 0",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn liveness_probe_that_kills_is_named() {
    let stage = complete().await;
    behave(
        &stage,
        "crash",
        json!("{after: 20s, exitCode: 0, reason: Completed}"),
    )
    .await;
    let pod = stage.get(&format!("{PODS}/web-0")).await;
    let event = json!({
        "metadata": {"name": "killing"},
        "involvedObject": {
            "kind": "Pod", "namespace": "default", "name": "web-0",
            "uid": pod["metadata"]["uid"], "fieldPath": "spec.containers{app}",
        },
        "reason": "Killing",
        "message": "Container app failed liveness probe, will be restarted",
        "type": "Normal",
    });
    stage
        .create("/api/v1/namespaces/default/events", &event)
        .await;
    resolve(
        &stage,
        "restart-loop",
        "the liveness probe kills container app of pod web-0",
    )
    .await;
}

/// The pod is ready between two restarts, but never for long enough.
#[tokio::test(start_paused = true)]
async fn restarts_between_ready_phases_are_named() {
    let mut set = web(2);
    set["spec"]["minReadySeconds"] = json!(60);
    let stage = with(&set, 200).await;
    behave(&stage, "crash", json!("{after: 40s, exitCode: 3}")).await;
    for _ in 0..12 {
        let answer = why(&stage).await;
        assert_eq!(answer["cause"], "crash-loop", "{answer:#}");
        stage.pass(10).await;
    }
}

/// Restarts that are long over don't explain a pod that is unready now.
#[tokio::test(start_paused = true)]
async fn past_restarts_are_no_loop() {
    let stage = complete().await;
    let pods = stage.plane.pods();
    for _ in 0..3 {
        pods.crash("default", "web-1", Crash::default()).await;
        stage.pass(400).await;
    }
    stage.pass(900).await;
    assert_eq!(why(&stage).await["cause"], "settled");
    pods.set_ready("default", "web-1", false).await;
    stage.pass(5).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "pod-starting", "{answer:#}");
}

#[tokio::test(start_paused = true)]
async fn missing_secret_is_named_without_a_useless_command() {
    let mut set = web(1);
    let secret = json!({"secretKeyRef": {"name": "absent", "key": "k"}});
    set["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "A", "valueFrom": secret}]);
    let stage = with(&set, 5).await;
    let container = json!({
        "name": "app", "ready": false, "restartCount": 0, "image": "app:1", "imageID": "",
        "state": {"waiting": {
            "reason": "CreateContainerConfigError", "message": "secret \"absent\" not found"}},
    });
    let ready =
        json!({"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T12:00:01Z"});
    let status =
        json!({"phase": "Pending", "containerStatuses": [container], "conditions": [ready]});
    stage
        .patch(&format!("{PODS}/web-0/status"), &json!({"status": status}))
        .await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "config-missing", "{answer:#}");
    assert_eq!(answer["resolve"], json!([]), "{answer:#}");
    let text = answer["text"].as_str().expect("a text");
    assert_eq!(
        text,
        "pod web-0 needs the secret absent, which doesn't exist"
    );
}

/// The name is free again, but the controller waits in its back-off.
#[tokio::test(start_paused = true)]
async fn back_off_ends_with_any_change_of_the_set() {
    let stage = Stage::start().await;
    let containers = json!([{"name": "app", "image": "other:1"}]);
    let pod = json!({"metadata": {"name": "web-1"}, "spec": {"containers": containers}});
    stage.create(PODS, &pod).await;
    stage.create(SETS, &web(3)).await;
    stage.pass(400).await;
    let delete = "kubectl -n default delete pod web-1 --grace-period=0";
    kubectl(&stage, delete).await;
    stage.pass(5).await;
    let answer = assert_back_off(&stage, "web-1").await;
    assert_annotation_starts_a_sync(&stage, &answer).await;
}

/// The same after a pod of an earlier set held the name.
#[tokio::test(start_paused = true)]
async fn back_off_follows_an_earlier_set() {
    let stage = complete().await;
    let path = format!("{PODS}/web-1");
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    stage.patch(&path, &hold).await;
    let options = json!({"propagationPolicy": "Background"});
    stage.ask("DELETE", SET, "application/json", &options).await;
    stage.pass(3).await;
    stage.create(SETS, &web(3)).await;
    stage.pass(90).await;
    assert_eq!(why(&stage).await["cause"], "name-terminating");
    stage
        .patch(&path, &json!({"metadata": {"finalizers": null}}))
        .await;
    stage.pass(2).await;
    let answer = assert_back_off(&stage, "web-1").await;
    assert_annotation_starts_a_sync(&stage, &answer).await;
}

/// Checks that the controller waits in its back-off before it creates a pod.
async fn assert_back_off(stage: &Stage, pod: &str) -> Value {
    let answer = why(stage).await;
    assert_eq!(answer["cause"], "retry-back-off", "{answer:#}");
    assert_eq!(answer["state"], "waiting", "{answer:#}");
    let text = answer["text"].as_str().expect("a text");
    assert!(
        text.starts_with(&format!("pod {pod} can be created now: ")),
        "{text}"
    );
    assert!(text.contains("for 16m40s at most"), "{text}");
    let end = "any change of the set starts a sync at once";
    assert!(text.ends_with(end), "{text}");
    answer
}

/// Checks that the printed command has the pod created within a second.
async fn assert_annotation_starts_a_sync(stage: &Stage, answer: &Value) {
    let before = stage.now();
    kubectl(stage, answer["resolve"][0].as_str().expect("a command")).await;
    stage.pass(1).await;
    let pod = stage.get(&format!("{PODS}/web-1")).await;
    let created = pod["metadata"]["creationTimestamp"].as_str();
    let created: Timestamp = created.and_then(|at| at.parse().ok()).expect("a time");
    assert!(created.duration_since(before) <= SignedDuration::from_secs(1));
}

/// A quota that has room again no longer counts as the cause.
#[tokio::test(start_paused = true)]
async fn fixed_quota_leaves_the_back_off() {
    let stage = Stage::start().await;
    let quota = json!({
        "metadata": {"name": "small"},
        "spec": {"hard": {"requests.memory": "1Gi"}},
        "status": {"hard": {"requests.memory": "1Gi"}, "used": {"requests.memory": "768Mi"}},
    });
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    stage.create(quotas, &quota).await;
    let status = json!({"status": quota["status"]});
    stage
        .patch(&format!("{quotas}/small/status"), &status)
        .await;
    let server = stage.plane.service();
    let key = kube_test_control_plane::store::Key::of("resourcequotas", "default", "small");
    stage.deny_pods(move || {
        let quota = server.store().get(&key)?.value();
        let limit = quota["spec"]["hard"]["requests.memory"]
            .as_str()?
            .to_owned();
        (limit == "1Gi").then(|| {
            "exceeded quota: small, requested: requests.memory=512Mi, used: \
             requests.memory=768Mi, limited: requests.memory=1Gi"
                .to_owned()
        })
    });
    stage.create(SETS, &web(3)).await;
    stage.pass(300).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "quota", "{answer:#}");
    let command = answer["resolve"][0].as_str().expect("a command");
    assert!(
        command.contains(r#""requests.memory":"2304Mi""#),
        "{command}"
    );
    kubectl(&stage, command).await;
    let answer = why(&stage).await;
    assert_eq!(answer["cause"], "retry-back-off", "{answer:#}");
    let command = answer["resolve"][0].as_str().expect("a command");
    kubectl(&stage, command).await;
    stage.pass(60).await;
    assert_eq!(why(&stage).await["cause"], "settled");
}

#[tokio::test(start_paused = true)]
async fn leases_tell_a_back_off_from_a_missing_controller() {
    let mut stage = complete().await;
    stage.stop_controller();
    kubectl(
        &stage,
        "kubectl -n default delete pod web-2 --grace-period=0",
    )
    .await;
    stage.pass(200).await;
    let unknown = why(&stage).await;
    assert_eq!(unknown["cause"], "retry-back-off", "{unknown:#}");
    let lease = |renewed: Timestamp| {
        json!({
            "metadata": {"name": "kube-controller-manager"},
            "spec": {"holderIdentity": "host_1", "leaseDurationSeconds": 15,
                "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()},
        })
    };
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    stage.create(leases, &lease(stage.now())).await;
    let held = why(&stage).await;
    assert_eq!(held["cause"], "retry-back-off", "{held:#}");
    let line = "lease kube-controller-manager is held by host_1";
    assert!(held["evidence"].to_string().contains(line), "{held:#}");
    stage.pass(60).await;
    let expired = why(&stage).await;
    assert_eq!(expired["cause"], "no-controller", "{expired:#}");
    assert_eq!(expired["state"], "stuck", "{expired:#}");
    let line = "lease kube-controller-manager has no holder";
    assert!(
        expired["evidence"].to_string().contains(line),
        "{expired:#}"
    );
}
