//! Recreations that the cluster or another client interrupts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube_test_control_plane::admission::{AdmissionRequest, Denial, Operation};
use serde_json::{Value, json};

use super::{CHANGE, RECORD, RECORDS, all_uids, assert_owned, form, owning, records, settled};
use crate::stage::{SET, SETS, Stage, web};

const CONTINUE: &str = "recreate web --continue";
const RESTORE: &str = "recreate web --restore";
/// End of the errors of interruptions.
const COMMANDS: &str = "; go on with: kubectl sts recreate web --continue -n default; or go back \
                        with: kubectl sts recreate web --restore -n default\n";

/// Denies the creation of sets for as long as the flag is true; dry runs pass.
fn deny_sets(stage: &Stage, reason: &'static str) -> Arc<AtomicBool> {
    let is_denied = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_denied);
    let hook = move |request: &mut AdmissionRequest<'_>| {
        let is_set = request.kind.plural == "statefulsets";
        let is_creation = request.operation == Operation::Create && !request.dry_run;
        if is_set && is_creation && flag.load(Ordering::Relaxed) {
            return Err(Denial::Forbidden(reason.to_owned()));
        }
        Ok(())
    };
    stage.plane.server().admission().add("sets", hook);
    is_denied
}

#[tokio::test(start_paused = true)]
async fn refused_creation_leaves_two_ways_out() {
    for (command, expected) in [(CONTINUE, ("db", "2Gi")), (RESTORE, ("web", "1Gi"))] {
        let stage = settled(&owning(2)).await;
        let before = all_uids(&stage).await;
        let is_denied = deny_sets(&stage, "sets are frozen");
        let text = stage.sts(CHANGE).await;
        let state = format!(
            "StatefulSet web doesn't exist, and its pods run without a controller; its manifest is \
             in ConfigMap {RECORD}{COMMANDS}"
        );
        assert!(text.ends_with(&state), "{text}");
        assert!(text.contains("sets are frozen"), "{text}");
        let second = stage.sts(CHANGE).await;
        let expected_error = "error: a recreation of StatefulSet web is under way";
        assert_eq!(second, format!("{expected_error}{COMMANDS}"));
        for question in [
            "why web",
            "wait web",
            "watch web --once",
            "plan web --replicas 3",
        ] {
            let text = stage.sts(question).await;
            let error = "error: StatefulSet web doesn't exist in namespace default";
            let cause = format!("; a recreation of StatefulSet web is under way{COMMANDS}");
            assert!(text.starts_with(error) && text.ends_with(&cause), "{text}");
        }
        let search = format!("a recreation of StatefulSet web is under way{COMMANDS}");
        assert_eq!(stage.sts("why").await, search);
        let again = stage.sts(command).await;
        assert!(
            again.contains("sets are frozen") && again.ends_with(COMMANDS),
            "{again}"
        );
        is_denied.store(false, Ordering::Relaxed);
        let text = stage.sts(command).await;
        assert!(
            text.ends_with("form\n") || text.ends_with("recreated\n"),
            "{text}"
        );
        stage.pass(60).await;
        assert_eq!(form(&stage).await, (json!(expected.0), json!(expected.1)));
        assert_eq!(all_uids(&stage).await, before);
        assert_owned(&stage, command).await;
    }
}

#[tokio::test(start_paused = true)]
async fn quota_that_counts_the_deleted_set_delays_the_creation() {
    let stage = settled(&owning(2)).await;
    let is_denied = deny_sets(
        &stage,
        "exceeded quota: sets, requested: count/statefulsets.apps=1",
    );
    let freed = async {
        stage.pass(20).await;
        is_denied.store(false, Ordering::Relaxed);
    };
    let (text, ()) = tokio::join!(stage.sts(CHANGE), freed);
    assert!(text.contains("waiting: "), "{text}");
    assert!(text.ends_with("StatefulSet web is recreated\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn missing_controller_is_named_at_the_time_limit() {
    let mut stage = settled(&owning(2)).await;
    let before = all_uids(&stage).await;
    stage.stop_controller();
    let text = stage.sts(&format!("{CHANGE} --timeout 20s")).await;
    let state = "error: the time limit of 20s has passed: the controller must adopt pod web-0 and 3 \
                 more; the new StatefulSet web exists";
    assert!(text.ends_with(&[state, COMMANDS].concat()), "{text}");
    let text = stage.sts(CHANGE).await;
    let error = format!("error: a recreation of StatefulSet web is under way{COMMANDS}");
    assert_eq!(text, error);
    let note = format!("a recreation of StatefulSet web is under way{COMMANDS}");
    assert!(stage.sts("why web").await.ends_with(&note));
    stage.start_controller();
    let text = stage.sts(RESTORE).await;
    assert!(
        text.ends_with("StatefulSet web has its old form\n"),
        "{text}"
    );
    stage.pass(60).await;
    assert_eq!(all_uids(&stage).await, before);
    assert_owned(&stage, "after the restoration").await;
}

#[tokio::test(start_paused = true)]
async fn references_to_a_set_that_lost_its_finalizer_are_removed() {
    let stage = Stage::without_collector().await;
    stage.create(SETS, &owning(2)).await;
    stage.pass(60).await;
    let before = all_uids(&stage).await;
    let text = stage.sts(&format!("{CHANGE} --timeout 20s")).await;
    let state = "error: the time limit of 20s has passed: the garbage collector must let go of the \
                 pods of StatefulSet web, which is being deleted; StatefulSet web is being deleted, \
                 and its pods stay";
    assert!(text.ends_with(&[state, COMMANDS].concat()), "{text}");
    stage
        .patch(SET, &json!({"metadata": {"finalizers": null}}))
        .await;
    let text = stage.sts(CONTINUE).await;
    let line = "done    removed a former owner from 5 objects\n";
    assert!(text.starts_with(line), "{text}");
    assert!(text.ends_with("StatefulSet web is recreated\n"), "{text}");
    stage.pass(60).await;
    assert_eq!(all_uids(&stage).await, before);
    assert_owned(&stage, "after the release").await;
}

#[tokio::test(start_paused = true)]
async fn set_of_another_client_is_left_alone_unless_it_has_the_old_form() {
    let stage = settled(&owning(2)).await;
    let is_denied = deny_sets(&stage, "sets are frozen");
    stage.sts(CHANGE).await;
    is_denied.store(false, Ordering::Relaxed);
    // The pods run the image of the last rollout.
    let image = "/spec/template/spec/containers/0/image";
    let (mut third, mut old) = (web(2), owning(2));
    third["spec"]["serviceName"] = json!("third");
    for set in [&mut third, &mut old] {
        *set.pointer_mut(image).expect("a container") = json!("app:2");
    }
    stage.create(SETS, &third).await;
    for command in [CONTINUE, RESTORE] {
        let text = stage.sts(command).await;
        let error = format!(
            "error: another client created StatefulSet web in a form that is neither the old nor \
             the new one; to keep it, run: kubectl delete configmap {RECORD} -n default\n"
        );
        assert_eq!(text, error);
    }
    let delete = json!({"propagationPolicy": "Orphan"});
    stage.ask("DELETE", SET, "application/json", &delete).await;
    stage.pass(10).await;
    stage.create(SETS, &old).await;
    let text = stage.sts(CONTINUE).await;
    assert!(text.ends_with("StatefulSet web is recreated\n"), "{text}");
    assert_eq!(form(&stage).await, (json!("db"), json!("2Gi")));
    assert!(records(&stage).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn set_that_changed_after_the_preview_is_not_recreated() {
    let stage = settled(&owning(2)).await;
    let is_denied = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_denied);
    let hook = move |request: &mut AdmissionRequest<'_>| {
        let is_set = request.kind.plural == "statefulsets";
        let is_deletion = request.operation == Operation::Delete && !request.dry_run;
        if is_set && is_deletion && flag.load(Ordering::Relaxed) {
            return Err(Denial::Forbidden("sets are kept".to_owned()));
        }
        Ok(())
    };
    stage.plane.server().admission().add("sets", hook);
    let text = stage.sts(CHANGE).await;
    let state = format!("StatefulSet web stands as before{COMMANDS}");
    assert!(
        text.contains("sets are kept") && text.ends_with(&state),
        "{text}"
    );
    is_denied.store(false, Ordering::Relaxed);
    stage
        .patch(SET, &json!({"metadata": {"annotations": {"note": "mine"}}}))
        .await;
    let set = stage.get(SET).await;
    let text = stage.sts(CONTINUE).await;
    let error = "error: StatefulSet web was changed after the plan; end the recreation with: kubectl \
                 sts recreate web --restore -n default; then plan it again\n";
    assert_eq!(text, error);
    let text = stage.sts(RESTORE).await;
    assert!(
        text.ends_with("StatefulSet web has its old form\n"),
        "{text}"
    );
    assert_eq!(
        stage.get(SET).await["metadata"]["uid"],
        set["metadata"]["uid"]
    );
    assert!(records(&stage).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn lost_pod_is_reported() {
    let stage = settled(&owning(2)).await;
    let is_denied = deny_sets(&stage, "sets are frozen");
    stage.sts(CHANGE).await;
    is_denied.store(false, Ordering::Relaxed);
    let pod = "/api/v1/namespaces/default/pods/web-1";
    stage
        .ask("DELETE", pod, "application/json", &Value::Null)
        .await;
    stage.pass(60).await;
    let text = stage.sts(CONTINUE).await;
    assert!(text.contains("\nfail    pod web-1 "), "{text}");
    assert!(
        text.ends_with("StatefulSet web is recreated\nexit code 2\n"),
        "{text}"
    );
    assert_eq!(
        stage.get(RECORDS).await["items"].as_array().map(Vec::len),
        Some(0)
    );
}
