//! Tests of history truncation, and of changes that interfere with it.

use integration::space::Patch;
use integration::stateful_sets::{name, uid};
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use statefulset_client::resource::{CONTROLLER_REVISIONS, STATEFUL_SETS};

use crate::harness::{Fixture, identities, owner, web, write};

/// A set with one pod of this image, and a history limit of `limit` unused revisions.
fn with_history(image: &str, limit: u32) -> Value {
    let mut set = web(1, image);
    set["spec"]["revisionHistoryLimit"] = limit.into();
    set
}

async fn change_image(fixture: &Fixture, image: &str) {
    let template = web(1, image)["spec"]["template"].take();
    let patch = json!({"spec": {"template": template}});
    let patched = fixture
        .space
        .patch(&STATEFUL_SETS, "web", "", Patch::Merge, &patch);
    patched.await;
}

#[tokio::test(start_paused = true)]
async fn revision_changed_before_its_deletion_is_reevaluated() {
    integration::embedded_only!("stops single requests of the controller");
    let fixture = Fixture::start().await;
    fixture.bring_up(&with_history("web:1", 0)).await;
    let old = fixture.revisions().await.remove(0);
    let deletion = fixture
        .faults()
        .gate(write(Verb::Delete, "controllerrevisions"));
    let mark = fixture.mark();
    change_image(&fixture, "web:2").await;
    deletion.arrived(1).await;
    let note = json!({"metadata": {"annotations": {"note": "keep"}}});
    let noted = fixture
        .space
        .patch(&CONTROLLER_REVISIONS, name(&old), "", Patch::Merge, &note);
    noted.await;
    deletion.release();
    deletion.arrived(1).await;
    let kept = fixture.revisions().await;
    assert!(kept.iter().any(|revision| uid(revision) == uid(&old)));
    deletion.open();
    fixture.settle().await;
    let requests = fixture.revision_requests(mark);
    assert_eq!(requests[..3], ["201 create", "409 delete", "200 delete"]);
    assert_eq!(fixture.revisions().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn recreated_revision_with_same_name_survives() {
    integration::embedded_only!("stops single requests of the controller");
    let fixture = Fixture::start().await;
    fixture.bring_up(&with_history("web:1", 0)).await;
    let mut old = fixture.revisions().await.remove(0);
    let deletion = fixture
        .faults()
        .gate(write(Verb::Delete, "controllerrevisions"));
    change_image(&fixture, "web:2").await;
    deletion.arrived(1).await;
    let revision = name(&old).to_owned();
    fixture
        .space
        .delete(&CONTROLLER_REVISIONS, &revision, None)
        .await;
    // A foreign revision that only shares the name.
    old["metadata"] = json!({"name": revision});
    let other = fixture.space.create(&CONTROLLER_REVISIONS, &old).await;
    deletion.open();
    fixture.settle().await;
    let kept = fixture.revisions().await;
    assert_eq!(kept.len(), 2);
    assert!(identities(&kept).contains(&(revision, uid(&other).to_owned())));
}

#[tokio::test(start_paused = true)]
async fn adopted_revisions_beyond_the_limit_are_deleted() {
    integration::embedded_only!("stops single requests of the controller");
    let fixture = Fixture::start().await;
    fixture.bring_up(&with_history("web:1", 2)).await;
    change_image(&fixture, "web:2").await;
    fixture.until_complete("web").await;
    fixture.delete_set("web", "Orphan").await;
    fixture.settle().await;
    assert_eq!(fixture.revisions().await.len(), 2);
    let mark = fixture.mark();
    let set = fixture.bring_up(&with_history("web:2", 0)).await;
    let mut requests = fixture.revision_requests(mark);
    // The next sync may still find it in its cache.
    requests.retain(|request| request != "404 delete");
    assert_eq!(requests, ["200 patch", "200 patch", "200 delete"]);
    let revisions = fixture.revisions().await;
    assert_eq!(revisions.len(), 1);
    assert_eq!(owner(&revisions[0]), set);
}
