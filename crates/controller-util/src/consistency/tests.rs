//! Tests of when a sync proceeds and when it waits for a cache.

use super::*;
use crate::testing::{FakeCaches, builders};

fn setup() -> (Arc<FakeCaches>, RealConsistencyStore, ObjectKey) {
    let caches = Arc::new(FakeCaches::default());
    let store = RealConsistencyStore::new(Arc::<FakeCaches>::clone(&caches));
    (caches, store, ObjectKey::new("ns", "web"))
}

#[test]
fn sync_waits_until_the_cache_catches_up() {
    let (caches, store, web) = setup();
    caches.set_version(TrackedResource::Pods, "9");
    store.wrote_at(&web, "u", TrackedResource::Pods, "10");
    assert_eq!(
        store.ensure_ready(&web).unwrap_err().to_string(),
        "read version: 9 is not as new as written version: 10 for group resource pods"
    );
    caches.set_version(TrackedResource::Pods, "10");
    store.ensure_ready(&web).unwrap();
    caches.set_version(TrackedResource::Pods, "1");
    store.ensure_ready(&web).unwrap();
}

#[test]
fn older_write_does_not_replace_a_newer_one() {
    let (caches, store, web) = setup();
    caches.set_version(TrackedResource::StatefulSets, "15");
    store.wrote_at(&web, "u", TrackedResource::StatefulSets, "20");
    store.wrote_at(&web, "u", TrackedResource::StatefulSets, "10");
    assert!(store.ensure_ready(&web).is_err());
}

#[test]
fn incomparable_versions_are_skipped() {
    let (caches, store, web) = setup();
    store.wrote_at(&web, "u", TrackedResource::Pods, "10");
    store.ensure_ready(&web).unwrap();
    caches.set_version(TrackedResource::Pods, "5");
    store.wrote_at(&web, "u", TrackedResource::Pods, "");
    store.ensure_ready(&web).unwrap();
}

#[test]
fn new_incarnation_starts_without_writes() {
    let (caches, store, web) = setup();
    caches.set_version(TrackedResource::Pods, "5");
    store.wrote_at(&web, "old", TrackedResource::Pods, "10");
    store.wrote_at(&web, "new", TrackedResource::Pods, "4");
    store.ensure_ready(&web).unwrap();
    store.wrote_at(&web, "new", TrackedResource::Pods, "10");
    assert!(store.ensure_ready(&web).is_err());
    store.clear(&web);
    store.ensure_ready(&web).unwrap();
}

#[test]
fn deleted_pod_must_be_gone_or_terminating() {
    let (caches, store, web) = setup();
    let pod = ObjectKey::new("ns", "web-0");
    caches.show_not_terminating(&pod, "p");
    store.deleted_pod(&web, "u", &pod, "p");
    assert_eq!(
        store.ensure_ready(&web).unwrap_err(),
        StaleCache::PodDeleted { pod: pod.clone() }
    );
    caches.hide_pods();
    store.ensure_ready(&web).unwrap();
}

#[test]
fn caches_report_versions_and_running_pods() {
    let caches = Caches::default();
    caches.pods.bookmark("11");
    caches.claims.bookmark("12");
    caches.sets.bookmark("13");
    caches.revisions.bookmark("14");
    for (resource, version, text) in [
        (TrackedResource::Pods, "11", "pods"),
        (
            TrackedResource::PersistentVolumeClaims,
            "12",
            "persistentvolumeclaims",
        ),
        (TrackedResource::StatefulSets, "13", "statefulsets.apps"),
        (
            TrackedResource::ControllerRevisions,
            "14",
            "controllerrevisions.apps",
        ),
    ] {
        assert_eq!(caches.last_sync_resource_version(resource), version);
        assert_eq!(resource.to_string(), text);
    }

    let set = builders::set("web").build();
    let pod = builders::pod(&set, 0);
    let key = ObjectKey::new("ns", "web-0");
    assert!(!caches.shows_pod_not_terminating(&key, "web-0-uid"));
    caches.pods.add(pod.build());
    assert!(caches.shows_pod_not_terminating(&key, "web-0-uid"));
    assert!(!caches.shows_pod_not_terminating(&key, "another"));
    caches.pods.add(pod.terminating().build());
    assert!(!caches.shows_pod_not_terminating(&key, "web-0-uid"));
}

#[test]
fn sync_waits_for_every_deleted_pod() {
    let (caches, store, web) = setup();
    for name in ["web-0", "web-1"] {
        store.deleted_pod(&web, "u", &ObjectKey::new("ns", name), name);
    }
    let last = ObjectKey::new("ns", "web-1");
    caches.show_not_terminating(&last, "web-1");
    let stale = StaleCache::PodDeleted { pod: last };
    assert_eq!(store.ensure_ready(&web).unwrap_err(), stale);
    assert_eq!(
        store.ensure_ready(&web).unwrap_err(),
        stale,
        "the record is kept"
    );
}

#[test]
fn noop_store_waits_for_nothing() {
    let store = NoopConsistencyStore;
    let web = ObjectKey::new("ns", "web");
    store.wrote_at(&web, "u", TrackedResource::Pods, "10");
    store.deleted_pod(&web, "u", &ObjectKey::new("ns", "web-0"), "p");
    store.clear(&web);
    store.ensure_ready(&web).unwrap();
}
