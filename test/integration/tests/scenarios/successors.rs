//! Tests of sets that are deleted and immediately recreated while objects of the earlier one
//! remain, and of histories with duplicate revisions.

use std::collections::BTreeSet;
use std::time::Duration;

use integration::space::Patch;
use integration::stateful_sets::{name, uid};
use serde_json::json;
use statefulset_client::resource::{CONTROLLER_REVISIONS, STATEFUL_SETS};

use crate::harness::{Fixture, identities, owner, web};

/// Checks that all revisions belong to the set, and that the named ones exist.
async fn assert_own_revisions(fixture: &Fixture, set: &str) {
    let revisions = fixture.revisions().await;
    for revision in &revisions {
        assert_eq!(owner(revision), set, "{revision:#}");
    }
    let there: BTreeSet<&str> = revisions.iter().map(name).collect();
    let status = fixture.space.get(&STATEFUL_SETS, "web").await["status"].clone();
    let labels = fixture.pods().await;
    let labels = labels
        .iter()
        .map(|pod| &pod["metadata"]["labels"]["controller-revision-hash"]);
    for named in labels.chain([&status["currentRevision"], &status["updateRevision"]]) {
        let named = named.as_str().expect("a name");
        assert!(there.contains(named), "{named} is not in {there:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn recreated_set_waits_for_garbage_collection() {
    integration::embedded_only!("counts requests and delays collectors");
    for (retention, image) in [
        ("Retain", "web:1"),
        ("Delete", "web:1"),
        ("Retain", "web:2"),
        ("Delete", "web:2"),
    ] {
        let fixture = Fixture::with_collector_after(Duration::from_secs(20)).await;
        let with_retention = |image: &str| {
            let mut set = web(3, image);
            set["spec"]["persistentVolumeClaimRetentionPolicy"] =
                json!({"whenDeleted": retention, "whenScaled": "Retain"});
            set
        };
        let first = fixture.bring_up(&with_retention("web:1")).await;
        let (pods, claims) = (fixture.pods().await, fixture.claims().await);
        fixture.delete_set("web", "Background").await;
        let second = fixture
            .space
            .create(&STATEFUL_SETS, &with_retention(image))
            .await;
        let second = uid(&second);
        assert_ne!(first, second);
        // The old pods can't be adopted, and occupy the names.
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert_eq!(identities(&fixture.pods().await), identities(&pods));

        fixture.until_complete("web").await;
        fixture.settle().await;
        for pod in fixture.pods().await {
            assert_eq!(owner(&pod), second, "{retention}");
        }
        let kept = identities(&fixture.claims().await);
        if retention == "Retain" {
            assert_eq!(kept, identities(&claims));
        } else {
            let old = identities(&claims);
            assert!(
                kept.len() == 3 && kept.iter().all(|it| !old.contains(it)),
                "{kept:?}"
            );
        }
        assert_own_revisions(&fixture, second).await;
        fixture.expect_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn newest_of_two_equal_revisions_stays_in_use() {
    integration::embedded_only!("counts requests and delays collectors");
    let fixture = Fixture::start().await;
    let set = fixture.bring_up(&web(2, "web:1")).await;
    let mut twin = fixture.revisions().await.remove(0);
    let metadata = twin["metadata"].as_object_mut().expect("an object");
    metadata.retain(|member, _| ["labels", "ownerReferences"].contains(&member.as_str()));
    twin["metadata"]["name"] = json!("web-twin");
    fixture.space.create(&CONTROLLER_REVISIONS, &twin).await;
    let mark = fixture.mark();
    // Revision events trigger no sync.
    let note = json!({"metadata": {"annotations": {"note": "look"}}});
    let patched = fixture
        .space
        .patch(&STATEFUL_SETS, "web", "", Patch::Merge, &note);
    patched.await;
    fixture.settle().await;
    fixture.until_complete("web").await;
    let steps = [
        "delete web-1",
        "create web-1",
        "delete web-0",
        "create web-0",
    ];
    assert_eq!(fixture.pod_writes(mark), steps);
    let status = fixture.space.get(&STATEFUL_SETS, "web").await["status"].clone();
    assert_eq!(status["updateRevision"], "web-twin");
    assert_eq!(status["currentRevision"], "web-twin");
    assert_eq!(fixture.revisions().await.len(), 2);
    assert_own_revisions(&fixture, &set).await;

    let mark = fixture.mark();
    let note = json!({"metadata": {"annotations": {"note": "look again"}}});
    let patched = fixture
        .space
        .patch(&STATEFUL_SETS, "web", "", Patch::Merge, &note);
    patched.await;
    fixture.assert_no_writes_after(mark).await;
}
