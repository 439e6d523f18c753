//! Tests of history truncation, and of changes that interfere with it.

use integration::space::Patch;
use integration::stateful_sets::{name, uid};
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use statefulset_client::resource::{CONTROLLER_REVISIONS, STATEFUL_SETS};

use crate::harness::{Stage, identities, owner, web, write};

/// A set with one pod of this image, and a history limit of `limit` unused revisions.
fn with_history(image: &str, limit: u32) -> Value {
    let mut set = web(1, image);
    set["spec"]["revisionHistoryLimit"] = limit.into();
    set
}

async fn change_image(stage: &Stage, image: &str) {
    let template = web(1, image)["spec"]["template"].take();
    let patch = json!({"spec": {"template": template}});
    let patched = stage
        .space
        .patch(&STATEFUL_SETS, "web", "", Patch::Merge, &patch);
    patched.await;
}

#[tokio::test(start_paused = true)]
async fn revision_changed_before_its_deletion_is_reevaluated() {
    integration::embedded_only!("stops single requests of the controller");
    let stage = Stage::start().await;
    stage.bring_up(&with_history("web:1", 0)).await;
    let old = stage.revisions().await.remove(0);
    let deletion = stage
        .faults()
        .gate(write(Verb::Delete, "controllerrevisions"));
    let mark = stage.mark();
    change_image(&stage, "web:2").await;
    deletion.arrived(1).await;
    let note = json!({"metadata": {"annotations": {"note": "keep"}}});
    let noted = stage
        .space
        .patch(&CONTROLLER_REVISIONS, name(&old), "", Patch::Merge, &note);
    noted.await;
    deletion.release();
    deletion.arrived(1).await;
    let kept = stage.revisions().await;
    assert!(kept.iter().any(|revision| uid(revision) == uid(&old)));
    deletion.open();
    stage.settle().await;
    let requests = stage.revision_requests(mark);
    assert_eq!(requests[..3], ["201 create", "409 delete", "200 delete"]);
    assert_eq!(stage.revisions().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn recreated_revision_of_the_name_is_not_deleted() {
    integration::embedded_only!("stops single requests of the controller");
    let stage = Stage::start().await;
    stage.bring_up(&with_history("web:1", 0)).await;
    let mut old = stage.revisions().await.remove(0);
    let deletion = stage
        .faults()
        .gate(write(Verb::Delete, "controllerrevisions"));
    change_image(&stage, "web:2").await;
    deletion.arrived(1).await;
    let revision = name(&old).to_owned();
    stage
        .space
        .delete(&CONTROLLER_REVISIONS, &revision, None)
        .await;
    // A foreign revision that only shares the name.
    old["metadata"] = json!({"name": revision});
    let other = stage.space.create(&CONTROLLER_REVISIONS, &old).await;
    deletion.open();
    stage.settle().await;
    let kept = stage.revisions().await;
    assert_eq!(kept.len(), 2);
    assert!(identities(&kept).contains(&(revision, uid(&other).to_owned())));
}

#[tokio::test(start_paused = true)]
async fn adopted_revisions_beyond_the_limit_are_deleted() {
    integration::embedded_only!("stops single requests of the controller");
    let stage = Stage::start().await;
    stage.bring_up(&with_history("web:1", 2)).await;
    change_image(&stage, "web:2").await;
    stage.until_complete("web").await;
    stage.delete_set("web", "Orphan").await;
    stage.settle().await;
    assert_eq!(stage.revisions().await.len(), 2);
    let mark = stage.mark();
    let set = stage.bring_up(&with_history("web:2", 0)).await;
    let mut requests = stage.revision_requests(mark);
    // The next sync may still find it in its cache.
    requests.retain(|request| request != "404 delete");
    assert_eq!(requests, ["200 patch", "200 patch", "200 delete"]);
    let revisions = stage.revisions().await;
    assert_eq!(revisions.len(), 1);
    assert_eq!(owner(&revisions[0]), set);
}
