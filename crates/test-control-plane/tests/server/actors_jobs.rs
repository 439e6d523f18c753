//! The job controller.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{KubeletConfig, Outcome, PodBehaviour};
use kube_test_control_plane::audit::Settle;
use serde_json::{Value, json};

use crate::support::{Plane, call_patch};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const WORK: &str = "/apis/batch/v1/namespaces/default/jobs/work";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn plane(outcome: Outcome) -> Plane {
    let kubelet = KubeletConfig::new(
        PodBehaviour::default()
            .outcome(outcome)
            .ready_delay(Duration::from_secs(4)),
    );
    let builder = TestControlPlane::builder().kubelet(kubelet).all_actors();
    Plane::new(builder.start().await)
}

fn job(spec: &Value) -> Value {
    let container = json!({"name": "c", "image": "registry.example/c:1"});
    let mut job = json!({
        "metadata": {"name": "work"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    });
    for (member, value) in spec.as_object().unwrap() {
        job["spec"][member] = value.clone();
    }
    job
}

async fn settle(plane: &Plane) {
    let quiet = Settle::quiet_for(Duration::from_secs(120));
    plane.0.server().audit().settle(&quiet).await.unwrap();
}

async fn pods(plane: &Plane) -> Vec<Value> {
    plane.get(PODS).await["items"].as_array().unwrap().clone()
}

/// Returns the types and reasons of the conditions that hold.
fn conditions(job: &Value) -> Vec<(&str, &str)> {
    let conditions = job["status"]["conditions"].as_array();
    let held = conditions
        .into_iter()
        .flatten()
        .filter(|it| it["status"] == "True");
    held.map(|it| (it["type"].as_str().unwrap(), it["reason"].as_str().unwrap()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn job_completes_in_parallel() {
    let plane = plane(Outcome::Succeeds).await;
    let spec = json!({"completions": 5, "parallelism": 2});
    plane.create(JOBS, &job(&spec)).await;
    for _ in 0..150 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let running = pods(&plane).await.into_iter();
        let running = running
            .filter(|pod| pod["status"]["phase"] != "Succeeded")
            .count();
        assert!(running <= 2, "{running}");
    }
    settle(&plane).await;
    let work = plane.get(WORK).await;
    let reason = "CompletionsReached";
    assert_eq!(
        conditions(&work),
        [("SuccessCriteriaMet", reason), ("Complete", reason)]
    );
    let status = &work["status"];
    assert_eq!(
        (&status["succeeded"], status.get("failed")),
        (&json!(5), None)
    );
    assert_eq!((status.get("active"), &status["ready"]), (None, &json!(0)));
    assert_eq!(status["uncountedTerminatedPods"], json!({}));
    assert!(
        status["startTime"].as_str() < status["completionTime"].as_str(),
        "{status}"
    );
    let pods = pods(&plane).await;
    assert_eq!(pods.len(), 5);
    assert!(
        pods.iter()
            .all(|pod| pod["metadata"].get("finalizers").is_none())
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failing_job_backs_off_and_gives_up() {
    let plane = plane(Outcome::Fails).await;
    plane.create(JOBS, &job(&json!({"backoffLimit": 2}))).await;
    settle(&plane).await;
    let work = plane.get(WORK).await;
    let reason = "BackoffLimitExceeded";
    assert_eq!(
        conditions(&work),
        [("FailureTarget", reason), ("Failed", reason)]
    );
    assert_eq!(work["status"]["failed"], 3);
    assert_eq!(work["status"].get("completionTime"), None);
    let pods = pods(&plane).await;
    let times: BTreeSet<&str> = pods
        .iter()
        .map(|pod| pod["metadata"]["creationTimestamp"].as_str().unwrap())
        .collect();
    // Each pod fails after 4 s; then come 10 and 20 s of pause.
    let seconds: Vec<&str> = times.iter().map(|time| &time[14..19]).collect();
    assert_eq!(seconds, ["00:00", "00:14", "00:38"]);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn indexed_job_runs_each_index() {
    let plane = plane(Outcome::Succeeds).await;
    let spec = json!({"completions": 4, "parallelism": 3, "completionMode": "Indexed"});
    plane.create(JOBS, &job(&spec)).await;
    settle(&plane).await;
    let work = plane.get(WORK).await;
    assert_eq!(work["status"]["completedIndexes"], "0-3");
    assert_eq!(work["status"]["succeeded"], 4);
    for pod in pods(&plane).await {
        let index = &pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"];
        let host = format!("work-{}", index.as_str().unwrap());
        assert_eq!(pod["spec"]["hostname"], *host);
        let variable = &pod["spec"]["containers"][0]["env"][0];
        assert_eq!(variable["name"], "JOB_COMPLETION_INDEX");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn suspended_job_has_no_pods() {
    let plane = plane(Outcome::Succeeds).await;
    plane.create(JOBS, &job(&json!({"suspend": true}))).await;
    settle(&plane).await;
    let work = plane.get(WORK).await;
    assert_eq!(conditions(&work), [("Suspended", "JobSuspended")]);
    assert_eq!(
        (pods(&plane).await.len(), work["status"].get("startTime")),
        (0, None)
    );
    call_patch(&plane, WORK, &json!({"spec": {"suspend": false}})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(pods(&plane).await.len(), 1);
    call_patch(&plane, WORK, &json!({"spec": {"suspend": true}})).await;
    settle(&plane).await;
    let work = plane.get(WORK).await;
    assert_eq!(
        (pods(&plane).await.len(), work["status"].get("failed")),
        (0, None)
    );
    call_patch(&plane, WORK, &json!({"spec": {"suspend": false}})).await;
    settle(&plane).await;
    assert_eq!(plane.get(WORK).await["status"]["succeeded"], 1);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn job_ends_at_its_deadline() {
    let plane = plane(Outcome::NeverReady).await;
    plane
        .create(JOBS, &job(&json!({"activeDeadlineSeconds": 30})))
        .await;
    settle(&plane).await;
    let work = plane.get(WORK).await;
    let reason = "DeadlineExceeded";
    assert_eq!(
        conditions(&work),
        [("FailureTarget", reason), ("Failed", reason)]
    );
    assert_eq!(pods(&plane).await.len(), 0);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deleted_job_leaves_no_tracked_pods() {
    for (policy, left) in [("Background", 0), ("Foreground", 0), ("Orphan", 1)] {
        let plane = plane(Outcome::NeverReady).await;
        plane.create(JOBS, &job(&json!({}))).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let options = json!({"propagationPolicy": policy});
        plane.call(Method::DELETE, WORK, &options).await;
        settle(&plane).await;
        assert_eq!(plane.code(WORK).await, 404, "{policy}");
        let pods = pods(&plane).await;
        assert_eq!(pods.len(), left, "{policy}: {pods:?}");
        let is_free = |pod: &Value| pod["metadata"].get("finalizers").is_none();
        assert!(pods.iter().all(is_free), "{policy}: {pods:?}");
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn ended_job_is_deleted_after_its_time() {
    let plane = plane(Outcome::Succeeds).await;
    plane
        .create(JOBS, &job(&json!({"ttlSecondsAfterFinished": 300})))
        .await;
    tokio::time::sleep(Duration::from_secs(290)).await;
    assert_eq!(plane.code(WORK).await, 200);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(plane.code(WORK).await, 404);
    assert_eq!(pods(&plane).await.len(), 0);
    plane.stop().await;
}
