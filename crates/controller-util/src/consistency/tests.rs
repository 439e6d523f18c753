//! When a sync may go on, and when it waits for a cache.

use super::*;

#[derive(Default)]
struct FakeCaches {
    versions: Mutex<BTreeMap<TrackedResource, String>>,
    running: Mutex<Vec<(ObjectKey, String)>>,
}

impl FakeCaches {
    fn set(&self, resource: TrackedResource, version: &str) {
        self.versions
            .lock()
            .unwrap()
            .insert(resource, version.to_owned());
    }
}

impl CacheVersions for FakeCaches {
    fn last_sync_resource_version(&self, resource: TrackedResource) -> String {
        self.versions
            .lock()
            .unwrap()
            .get(&resource)
            .cloned()
            .unwrap_or_default()
    }

    fn shows_pod_running(&self, pod: &ObjectKey, pod_uid: &str) -> bool {
        self.running
            .lock()
            .unwrap()
            .iter()
            .any(|(key, uid)| key == pod && uid == pod_uid)
    }
}

fn setup() -> (Arc<FakeCaches>, RealConsistencyStore, ObjectKey) {
    let caches = Arc::new(FakeCaches::default());
    let store = RealConsistencyStore::new(Arc::<FakeCaches>::clone(&caches));
    (caches, store, ObjectKey::new("ns", "web"))
}

#[test]
fn a_sync_waits_until_the_cache_has_caught_up_and_then_forgets() {
    let (caches, store, web) = setup();
    caches.set(TrackedResource::Pods, "9");
    store.wrote_at(&web, "u", TrackedResource::Pods, "10");
    assert_eq!(
        store.ensure_ready(&web).unwrap_err().to_string(),
        "read version: 9 is not as new as written version: 10 for group resource pods"
    );
    caches.set(TrackedResource::Pods, "10");
    store.ensure_ready(&web).unwrap();
    caches.set(TrackedResource::Pods, "1");
    store.ensure_ready(&web).unwrap();
}

#[test]
fn an_older_write_doesnt_replace_a_newer_one() {
    let (caches, store, web) = setup();
    caches.set(TrackedResource::StatefulSets, "15");
    store.wrote_at(&web, "u", TrackedResource::StatefulSets, "20");
    store.wrote_at(&web, "u", TrackedResource::StatefulSets, "10");
    assert!(store.ensure_ready(&web).is_err());
}

#[test]
fn versions_that_dont_compare_are_skipped() {
    let (caches, store, web) = setup();
    store.wrote_at(&web, "u", TrackedResource::Pods, "10");
    store.ensure_ready(&web).unwrap();
    caches.set(TrackedResource::Pods, "5");
    store.wrote_at(&web, "u", TrackedResource::Pods, "");
    store.ensure_ready(&web).unwrap();
}

#[test]
fn another_incarnation_starts_afresh() {
    let (caches, store, web) = setup();
    caches.set(TrackedResource::Pods, "5");
    store.wrote_at(&web, "old", TrackedResource::Pods, "10");
    store.wrote_at(&web, "new", TrackedResource::Pods, "4");
    store.ensure_ready(&web).unwrap();
    store.wrote_at(&web, "new", TrackedResource::Pods, "10");
    store.clear(&web, Some("old"));
    assert!(store.ensure_ready(&web).is_err());
    store.clear(&web, Some("new"));
    store.ensure_ready(&web).unwrap();
}

#[test]
fn a_deleted_pod_must_be_seen_gone_or_terminating() {
    let (caches, store, web) = setup();
    let pod = ObjectKey::new("ns", "web-0");
    caches
        .running
        .lock()
        .unwrap()
        .push((pod.clone(), "p".to_owned()));
    store.deleted_pod(&web, "u", &pod, "p");
    assert_eq!(
        store.ensure_ready(&web).unwrap_err(),
        StaleCache::PodDeleted { pod: pod.clone() }
    );
    caches.running.lock().unwrap().clear();
    store.ensure_ready(&web).unwrap();
}
