//! Predicted writes of single syncs.

use jiff::Timestamp;
use serde_json::json;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::{self, Builder, owner_reference};
use statefulset_set_control::Waiting;

use super::*;

const NOW: &str = "2026-03-01T12:00:00Z";
const READY: &str = "2026-03-01T11:00:00Z";

fn web() -> Builder<StatefulSet> {
    builders::set("web").replicas(2).claim_template("data")
}

async fn dry(caches: &Caches) -> DrySync {
    let now: Timestamp = NOW.parse().unwrap();
    let key = ObjectKey::new("ns", "web");
    dry_sync(caches, &key, now, FeatureGates::default()).await
}

fn lines(sync: &DrySync) -> Vec<String> {
    let line = |it: &DryWrite| format!("{} {} {}", it.verb, it.resource, it.name);
    sync.writes.iter().map(line).collect()
}

/// The name of the revision that the controller records for the set.
async fn revision_of(set: &Builder<StatefulSet>) -> DryWrite {
    let caches = Caches::default();
    caches.sets.add(set.build());
    let writes = dry(&caches).await.writes;
    writes.into_iter().next().unwrap()
}

/// A settled set with its revision, claims and pods.
async fn settled(set: &Builder<StatefulSet>) -> Caches {
    let recorded = revision_of(set).await;
    let set = set.build();
    let caches = Caches::default();
    let data = serde_json::from_str::<serde_json::Value>(&recorded.body).unwrap();
    let data = data["data"].to_string();
    let revision = builders::revision(&set, &recorded.name, 1, &data);
    caches.revisions.add(revision.build());
    for ordinal in 0..2 {
        let pod = builders::pod(&set, ordinal).ready_since(READY);
        caches.pods.add(pod.revision(&recorded.name).build());
        caches
            .claims
            .add(builders::claim(&set, "data", ordinal).build());
    }
    caches.sets.add(set);
    caches
}

#[tokio::test]
async fn first_sync_creates_revision_claim_and_pod() {
    let caches = Caches::default();
    caches.sets.add(web().build());
    let sync = dry(&caches).await;
    let revision = &sync.writes[0].name;
    let wanted = [
        &format!("create controllerrevisions.apps {revision}"),
        "create persistentvolumeclaims data-web-0",
        "create pods web-0",
    ];
    assert_eq!(lines(&sync), wanted);
    let waiting = sync.outcome.unwrap().waiting;
    assert_eq!(waiting, Some(Waiting::PodCreated("web-0".into())));
    assert!(sync.writes[2].body.contains(revision));
    assert!(caches.pods.is_empty());
}

#[tokio::test]
async fn settled_set_needs_no_write() {
    let sync = dry(&settled(&web()).await).await;
    assert_eq!(lines(&sync), [""; 0]);
    assert_eq!(sync.outcome.unwrap().waiting, None);
}

#[tokio::test]
async fn condemned_pod_is_deleted_after_a_live_read() {
    let set = web().retention("Delete", "Retain");
    let caches = settled(&set).await;
    caches
        .sets
        .add(set.clone().replicas(1).generation(2).build());
    let sync = dry(&caches).await;
    let wanted = [
        "update persistentvolumeclaims data-web-1",
        "delete pods web-1",
    ];
    assert_eq!(lines(&sync), wanted);
    assert!(sync.writes[0].body.contains("web-1"));
}

/// The pod with ordinal 1, ready, of the cached revision.
fn second_pod(caches: &Caches, set: &StatefulSet) -> Builder<Pod> {
    let revision = &caches.revisions.list()[0].name;
    builders::pod(set, 1).ready_since(READY).revision(revision)
}

#[tokio::test]
async fn repair_starts_from_the_cached_pod() {
    let caches = settled(&web()).await;
    let set = caches.sets.get("ns", "web").unwrap();
    let pod = second_pod(&caches, &set);
    caches.pods.add(
        pod.without_label("statefulset.kubernetes.io/pod-name")
            .build(),
    );
    let sync = dry(&caches).await;
    assert_eq!(lines(&sync), ["update pods web-1"]);
    let body = &sync.writes[0].body;
    assert!(
        body.contains(r#""statefulset.kubernetes.io/pod-name":"web-1""#),
        "{body}"
    );
}

#[tokio::test]
async fn taken_name_is_an_error_after_the_write() {
    let caches = settled(&web()).await;
    let set = caches.sets.get("ns", "web").unwrap();
    let foreign = builders::pod(&set, 1).orphan();
    let owner = owner_reference(("apps/v1", "ReplicaSet"), "other", "other-uid", Some(true));
    caches.pods.add(foreign.owner(owner).build());
    let sync = dry(&caches).await;
    assert_eq!(lines(&sync), ["create pods web-1"]);
    let error = sync.outcome.unwrap_err().to_string();
    assert_eq!(error, r#"pods "web-1" already exists"#);
}

#[tokio::test]
async fn orphans_are_adopted() {
    let caches = settled(&web()).await;
    let set = caches.sets.get("ns", "web").unwrap();
    let revision = caches.revisions.list()[0].name.clone();
    caches.pods.add(second_pod(&caches, &set).orphan().build());
    let data = caches.revisions.list()[0].data.to_str().into_owned();
    let orphan = builders::revision(&set, &revision, 1, &data);
    caches.revisions.add(orphan.orphan().build());
    let sync = dry(&caches).await;
    let wanted = [
        format!("patch controllerrevisions.apps {revision}"),
        "patch pods web-1".into(),
    ];
    assert_eq!(lines(&sync), wanted);
    assert!(sync.outcome.is_ok());
}

#[test]
fn pod_that_is_not_ready_is_read_as_it_is_cached() {
    let set = web().build();
    for reason in [
        "",
        "ErrImagePull",
        "CreateContainerError",
        "CrashLoopBackOff",
    ] {
        let waiting = json!({"name": "main", "state": {"waiting": {"reason": reason}}});
        let pod = builders::pod(&set, 0)
            .with("metadata.creationTimestamp", "2026-03-01T10:00:00Z")
            .with(
                "status",
                json!({"phase": "Pending", "containerStatuses": [waiting]}),
            )
            .build();
        let caches = Caches::default();
        caches.pods.add(pod.clone());
        let texts = texts(&caches);
        let read = Pod::decode(&texts[0]).unwrap();
        assert_eq!(read.unready, pod.unready, "{reason}");
    }
}
