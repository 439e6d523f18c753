//! Ends of `wait`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{SET, SETS, Stage, complete, web};

/// Waits and returns the output, and the seconds that it took.
async fn wait(stage: &Stage, arguments: &str) -> (String, i64) {
    let begin = stage.now();
    let text = stage.sts(&format!("wait {arguments}")).await;
    (text, stage.now().duration_since(begin).as_secs())
}

/// Changes the behaviour of new pods.
async fn behave(stage: &Stage, name: &str, value: Value) {
    let annotations = json!({format!("kubelet.test-control-plane/{name}"): value});
    let template = json!({"metadata": {"annotations": annotations}});
    stage
        .patch(SET, &json!({"spec": {"template": template}}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn wait_ends_when_the_rollout_is_complete() {
    let stage = Stage::start().await;
    stage.create(SETS, &web(3)).await;
    let (text, seconds) = wait(&stage, "web").await;
    assert!(text.ends_with("complete after 6s\n"), "{text}");
    assert!((6..=10).contains(&seconds), "{seconds}");
    // The first look may be one before the controller sees the change.
    stage.set_image("app:2").await;
    let (text, seconds) = wait(&stage, "sts/web --timeout=5m").await;
    assert!(
        text.starts_with("default/web: 3 of 3 ready, 3 updated, revision "),
        "{text}"
    );
    assert!(!text.contains("exit code"), "{text}");
    assert!(seconds > 6, "{seconds}");
    let (text, seconds) = wait(&stage, "web --timeout=0").await;
    assert!(text.ends_with("complete after 0s\n"), "{text}");
    assert_eq!(seconds, 0);
}

#[tokio::test(start_paused = true)]
async fn stuck_rollout_has_its_own_exit_code() {
    let stage = complete().await;
    behave(&stage, "image-pull-failure", json!("{}")).await;
    let (text, seconds) = wait(&stage, "web --timeout=10m").await;
    assert!(
        text.contains("the image app:1 of pod web-2 can't be pulled"),
        "{text}"
    );
    assert!(
        text.contains("resolve   kubectl -n default rollout undo"),
        "{text}"
    );
    let end = "waiting does not resolve image-pull\nexit code 2\n";
    assert!(text.ends_with(end), "{text}");
    // Time could have resolved it at first.
    assert!((55..=75).contains(&seconds), "{seconds}");
    let (text, seconds) = wait(&stage, "web").await;
    assert!(text.ends_with(end), "{text}");
    assert_eq!(seconds, 0);
}

#[tokio::test(start_paused = true)]
async fn cause_for_a_person_ends_the_wait_at_once() {
    let stage = complete().await;
    let strategy = json!({"type": "OnDelete", "rollingUpdate": null});
    stage
        .patch(SET, &json!({"spec": {"updateStrategy": strategy}}))
        .await;
    stage.set_image("app:2").await;
    let (text, seconds) = wait(&stage, "web --timeout=10m").await;
    let end = "waiting does not resolve on-delete\nexit code 2\n";
    assert!(text.ends_with(end), "{text}");
    assert!(seconds < 10, "{seconds}");
    // All pods are available, though not in the new revision.
    let (text, _) = wait(&stage, "web --for=available").await;
    assert!(text.ends_with("available after 0s\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn time_limit_has_its_own_exit_code() {
    let stage = complete().await;
    behave(&stage, "start-delay", json!("50s")).await;
    let (text, seconds) = wait(&stage, "web --timeout=20s").await;
    assert!(text.contains("pod web-2 is starting"), "{text}");
    assert!(
        text.ends_with("not complete after 20s, the time limit\nexit code 3\n"),
        "{text}"
    );
    assert_eq!(seconds, 20);
    let (text, _) = wait(&stage, "web --for=stalled --timeout=5s").await;
    assert!(
        text.ends_with("not stalled after 5s, the time limit\nexit code 3\n"),
        "{text}"
    );
    // Time may still resolve this cause.
    let stage = complete().await;
    behave(&stage, "image-pull-failure", json!("{}")).await;
    stage.pass(20).await;
    let (text, _) = wait(&stage, "web --timeout=0").await;
    assert!(text.ends_with("exit code 3\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn stall_can_be_waited_for() {
    let stage = complete().await;
    behave(&stage, "crash", json!("{}")).await;
    let (text, seconds) = wait(&stage, "web --for=stalled --timeout=10m -o json").await;
    let end: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    assert_eq!(end["for"], "stalled", "{end:#}");
    assert_eq!(end["end"], "done", "{end:#}");
    assert_eq!(end["cause"], "crash-loop", "{end:#}");
    assert_eq!(end["seconds"], seconds, "{end:#}");
}

#[tokio::test(start_paused = true)]
async fn partition_holds_completion_but_not_availability() {
    let stage = complete().await;
    let rolling = json!({"updateStrategy": {"rollingUpdate": {"partition": 2}}});
    stage.patch(SET, &json!({"spec": rolling})).await;
    stage.set_image("app:2").await;
    let (text, _) = wait(&stage, "web --timeout=5m").await;
    let end = "waiting does not resolve partition\nexit code 2\n";
    assert!(text.ends_with(end), "{text}");
    let (text, _) = wait(&stage, "web --for=available --timeout=5m").await;
    assert!(!text.contains("exit code"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn missing_and_deleted_sets_are_errors() {
    let stage = complete().await;
    let (text, _) = wait(&stage, "db").await;
    assert!(
        text.starts_with("error: StatefulSet db doesn't exist"),
        "{text}"
    );
    behave(&stage, "start-delay", json!("300s")).await;
    let deletion = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        let options = json!({"propagationPolicy": "Background"});
        stage.ask("DELETE", SET, "application/json", &options).await;
    };
    let (text, ()) = tokio::join!(stage.sts("wait web --timeout=10m"), deletion);
    assert!(
        text.starts_with("error: StatefulSet web doesn't exist"),
        "{text}"
    );
}

/// A set whose deletion waits for a finalizer never becomes complete.
#[tokio::test(start_paused = true)]
async fn set_that_is_being_deleted_ends_the_wait() {
    let mut set = web(1);
    set["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let stage = Stage::start().await;
    stage.create(SETS, &set).await;
    stage.pass(60).await;
    stage
        .ask("DELETE", SET, "application/json", &json!({}))
        .await;
    let (text, seconds) = wait(&stage, "web --timeout=10m").await;
    assert!(text.contains("the set is being deleted"), "{text}");
    assert!(text.ends_with("exit code 2\n"), "{text}");
    assert!(seconds < 10, "{seconds}");
}
