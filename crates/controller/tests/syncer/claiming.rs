//! Adoption and release of pods and revisions by a sync, and failures that stop it.

use std::sync::Arc;

use statefulset_controller_util::pod::Pod;

use crate::fixture::{Fixture, at, internal_error, not_found, orphan, owned, set, unlabelled};

#[tokio::test]
async fn orphans_with_matching_labels_and_name_are_adopted() {
    let fixture = Fixture::default();
    fixture.add_set(|_| {});
    fixture.add_pod(owned("web-1"));
    fixture.add_pod(orphan("web-2"));
    fixture.add_pod(unlabelled(orphan("web-3")));
    fixture.add_pod(orphan("xweb-4"));
    fixture.sync_quietly().await.unwrap();
    let expected = [
        "read ns/web",
        "adopt web-2",
        "update web with [web-1 web-2] at 0",
    ];
    assert_eq!(fixture.log.take(), expected);
}

#[tokio::test]
async fn unmatched_owned_pods_are_released_even_if_missing() {
    // A release of a missing pod counts as success.
    let fixture = Fixture {
        patch_failure: Some(not_found),
        ..Fixture::default()
    };
    fixture.add_set(|_| {});
    fixture.add_pod(owned("web-1"));
    fixture.add_pod(owned("xweb-2"));
    fixture.add_pod(unlabelled(owned("web-3")));
    fixture.add_pod(unlabelled(orphan("web-4")));
    fixture.sync_quietly().await.unwrap();
    let expected = [
        "release web-3",
        "release xweb-2",
        "update web with [web-1] at 0",
    ];
    assert_eq!(fixture.log.take(), expected);
}

#[tokio::test]
async fn pods_of_other_owners_are_ignored() {
    let fixture = Fixture::default();
    fixture.add_set(|_| {});
    let mut stranger = owned("web-0");
    Arc::make_mut(stranger.controller.as_mut().unwrap()).uid = "earlier".into();
    fixture.add_pod(stranger);
    fixture.add_pod(Pod {
        namespace: "elsewhere".into(),
        ..orphan("web-1")
    });
    fixture.sync_quietly().await.unwrap();
    assert_eq!(fixture.log.take(), ["update web with [] at 0"]);
}

#[tokio::test]
async fn revisions_are_adopted_before_pods_after_live_reads() {
    let fixture = Fixture::default();
    fixture.add_set(|_| {});
    fixture.add_revision("web-a", false);
    fixture.add_revision("web-b", true);
    fixture.add_revision("web-c", false);
    fixture.add_pod(orphan("web-0"));
    fixture.add_pod(orphan("web-1"));
    fixture.sync_quietly().await.unwrap();
    let expected = [
        "read ns/web",
        "adopt revisions web-a web-c",
        "read ns/web",
        "adopt web-0",
        "adopt web-1",
        "update web with [web-0 web-1] at 0",
    ];
    assert_eq!(fixture.log.take(), expected);
}

#[tokio::test]
async fn unseen_deletion_stops_the_revision_adoption() {
    let deleted = set(|set| set["metadata"]["deletionTimestamp"] = "2026-03-01T11:58:38Z".into());
    let fixture = Fixture {
        live: Some(Ok(deleted)),
        ..Fixture::default()
    };
    fixture.add_set(|_| {});
    fixture.add_revision("web-a", false);
    fixture.add_pod(orphan("web-1"));
    let error = fixture.sync_quietly().await.unwrap_err().to_string();
    let expected = "can't adopt ControllerRevisions: ns/web has just been deleted at ";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(fixture.log.take(), ["read ns/web"]);
}

#[tokio::test]
async fn rejected_pod_adoption_stops_the_sync() {
    let other = set(|set| set["metadata"]["uid"] = "later".into());
    let fixture = Fixture {
        live: Some(Ok(other)),
        ..Fixture::default()
    };
    fixture.add_set(|_| {});
    fixture.add_pod(orphan("web-1"));
    fixture.add_pod(orphan("web-2"));
    fixture.add_pod(unlabelled(owned("web-3")));
    let error = fixture.sync_quietly().await.unwrap_err();
    let gone = "can't recheck DeletionTimestamp: original StatefulSet ns/web is gone: got uid \
                later, wanted web-uid";
    assert_eq!(
        error.to_string(),
        format!(
            "[can't adopt Pod ns/web-1 (web-1-uid): {gone}, \
             can't adopt Pod ns/web-2 (web-2-uid): {gone}]"
        )
    );
    // The set is read once, and the other pods are tried despite the error.
    assert_eq!(fixture.log.take(), ["release web-3", "read ns/web"]);
}

#[tokio::test]
async fn failed_live_read_stops_the_revision_adoption() {
    let fixture = Fixture {
        live: Some(Err(not_found)),
        ..Fixture::default()
    };
    fixture.add_set(|_| {});
    fixture.add_revision("web-a", false);
    let error = fixture.sync_quietly().await.unwrap_err();
    let expected = "can't adopt ControllerRevisions: can't recheck DeletionTimestamp: not found";
    assert_eq!(error.to_string(), expected);
    assert_eq!(fixture.log.take(), ["read ns/web"]);
}

#[tokio::test]
async fn missing_orphan_is_skipped_and_other_errors_stop_the_sync() {
    let mut fixture = Fixture {
        patch_failure: Some(not_found),
        ..Fixture::default()
    };
    fixture.add_set(|_| {});
    fixture.add_pod(orphan("web-0"));
    fixture.sync_quietly().await.unwrap();
    let expected = ["read ns/web", "adopt web-0", "update web with [] at 0"];
    assert_eq!(fixture.log.take(), expected);

    fixture.patch_failure = Some(internal_error);
    assert_eq!(
        fixture.sync_quietly().await.unwrap_err().to_string(),
        "boom"
    );
    assert_eq!(fixture.log.take(), ["read ns/web", "adopt web-0"]);
}

#[tokio::test]
async fn terminating_set_neither_adopts_nor_releases_pods() {
    let fixture = Fixture::default();
    fixture.add_set(|set| set["metadata"]["deletionTimestamp"] = "2026-03-01T11:58:38Z".into());
    fixture.add_pod(owned("web-0"));
    fixture.add_pod(orphan("web-1"));
    fixture.add_pod(unlabelled(owned("web-2")));
    fixture.sync_quietly().await.unwrap();
    assert_eq!(fixture.log.take(), ["update web with [web-0] at 0"]);
}

#[tokio::test]
async fn terminating_orphan_is_not_adopted() {
    let fixture = Fixture::default();
    fixture.add_set(|_| {});
    fixture.add_pod(Pod {
        deletion_timestamp: Some(at(9)),
        ..orphan("web-0")
    });
    fixture.sync_quietly().await.unwrap();
    assert_eq!(fixture.log.take(), ["update web with [] at 0"]);
}
