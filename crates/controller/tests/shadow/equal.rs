//! Comparison of two identical controllers.

use kube_test_control_plane::admission::{AdmissionRequest, Denial, Operation};
use serde_json::{Value, json};
use statefulset_controller::metrics::Verdict;

use crate::stage::{Stage, image, web};

/// Checks that every write of the leader was explained at once.
fn assert_equal(stage: &Stage, least: u64) {
    let report = stage.report();
    assert_eq!(stage.count(Verdict::Different), 0, "{report:#}");
    assert_eq!(stage.count(Verdict::Late), 0, "{report:#}");
    assert!(stage.count(Verdict::Equal) >= least, "{report:#}");
    stage.assert_no_write();
}

#[tokio::test(start_paused = true)]
async fn rollout_of_the_same_controller_is_equal() {
    let stage = Stage::start().await;
    stage.create(&web(3)).await;
    stage.pass(60).await;
    // One revision, three claims, three pods.
    assert_eq!(stage.count(Verdict::Equal), 7, "{:#}", stage.report());
    stage.change(&image("app:2")).await;
    stage.pass(310).await;
    // One revision, three deletions, three creations.
    assert_eq!(stage.count(Verdict::Equal), 14, "{:#}", stage.report());
    assert_equal(&stage, 14);
    assert_eq!(stage.count(Verdict::Foreign), 0);
}

#[tokio::test(start_paused = true)]
async fn changes_of_ordered_sets_are_equal() {
    every_change_is_equal("OrderedReady").await;
}

#[tokio::test(start_paused = true)]
async fn changes_of_parallel_sets_are_equal() {
    every_change_is_equal("Parallel").await;
}

async fn every_change_is_equal(policy: &str) {
    let stage = Stage::start().await;
    let mut set = web(3);
    set["spec"]["podManagementPolicy"] = json!(policy);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenScaled": "Delete"});
    set["spec"]["minReadySeconds"] = json!(2);
    set["spec"]["revisionHistoryLimit"] = json!(1);
    stage.create(&set).await;
    stage.pass(60).await;
    let changes: [Value; 4] = [
        image("app:2"),
        json!({"replicas": 1}),
        json!({"replicas": 2, "ordinals": {"start": 1}}),
        json!({"template": {"spec": {"containers": [{"name": "app", "image": "app:1"}]}},
            "updateStrategy": {"rollingUpdate": {"partition": 1}}}),
    ];
    for change in changes {
        stage.change(&change).await;
        stage.pass(30).await;
    }
    stage.pass(310).await;
    assert_equal(&stage, 24);
    assert_eq!(stage.count(Verdict::Foreign), 0, "{:#}", stage.report());
}

#[tokio::test(start_paused = true)]
async fn pods_deleted_by_a_user_are_foreign() {
    let stage = Stage::start().await;
    stage.create(&web(3)).await;
    stage.pass(60).await;
    for pod in ["web-1", "web-2"] {
        stage.delete_pod(pod).await;
        stage.pass(60).await;
    }
    stage.pass(310).await;
    assert_equal(&stage, 9);
    assert_eq!(stage.count(Verdict::Foreign), 2, "{:#}", stage.report());
}

#[tokio::test(start_paused = true)]
async fn refused_writes_of_both_are_equal() {
    let stage = Stage::start().await;
    let hook = |request: &mut AdmissionRequest<'_>| {
        if request.kind.plural == "pods" && request.operation == Operation::Create {
            return Err(Denial::Forbidden("exceeded quota: small".to_owned()));
        }
        Ok(())
    };
    stage.plane.server().admission().add("limits", hook);
    stage.create(&web(2)).await;
    stage.pass(310).await;
    assert_equal(&stage, 2);
    assert_eq!(stage.count(Verdict::Refused), 1, "{:#}", stage.report());
}
