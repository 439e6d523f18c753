//! Reports of writes to the consistency store, which delays the next sync until the cache shows
//! them.

use std::sync::Arc;

use statefulset_client::fake::Verb;
use statefulset_client::resource::PODS;
use statefulset_controller_util::consistency::{
    ConsistencyStore, RealConsistencyStore, StaleCache, TrackedResource,
};
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::FakeCaches;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream::set;

use super::fixtures::{claim, misnamed_pod, new_pod, pod};
use crate::PodSlot;
use crate::tests::world::{ApiWorld, existing};

/// A pod control and its consistency store, with one tracked cache.
struct Tracked {
    caches: Arc<FakeCaches>,
    store: Arc<RealConsistencyStore>,
    resource: TrackedResource,
    world: ApiWorld,
}

/// The tracked cache has version 1; every write returns version 2.
fn tracking(resource: TrackedResource) -> Tracked {
    let caches = Arc::new(FakeCaches::default());
    caches.set_version(resource, "1");
    let store = RealConsistencyStore::new(Arc::<FakeCaches>::clone(&caches));
    let store = Arc::new(store);
    let world = ApiWorld::reporting_to(Arc::<RealConsistencyStore>::clone(&store));
    for verb in [Verb::Create, Verb::Update] {
        world.api.react(verb, "*", |action| {
            let mut written = action.json();
            written["metadata"]["resourceVersion"] = "2".into();
            Some(Ok(written.to_string()))
        });
    }
    Tracked {
        caches,
        store,
        resource,
        world,
    }
}

fn set_123() -> Builder<StatefulSet> {
    set(3).uid("set-123")
}

impl Tracked {
    /// Checks that the set waits until the cache shows the write.
    fn waits_for_the_write(&self) {
        let set = set_123().build().key();
        let stale = StaleCache::Older {
            read: "1".to_owned(),
            written: "2".to_owned(),
            resource: self.resource,
        };
        assert_eq!(self.store.ensure_ready(&set), Err(stale));
        self.caches.set_version(self.resource, "2");
        assert_eq!(self.store.ensure_ready(&set), Ok(()));
    }
}

mod test_stateful_pod_control_consistency_store {
    use super::*;

    #[tokio::test]
    async fn create_pod() {
        let (tracked, set) = (tracking(TrackedResource::Pods), set_123().build());
        let pod = PodSlot::Missing(new_pod(&set, 0));
        let control = &tracked.world.control;
        let created = control.for_sync(&set).create_stateful_pod(&pod).await;
        created.unwrap();
        tracked.waits_for_the_write();
    }

    #[tokio::test]
    async fn update_pod() {
        let (tracked, set) = (tracking(TrackedResource::Pods), set_123().build());
        let pod = misnamed_pod(&set);
        tracked.world.api.load(&PODS, pod.text());
        let pod = existing(&pod);
        let control = &tracked.world.control;
        let updated = control.for_sync(&set).update_stateful_pod(&pod).await;
        updated.unwrap();
        tracked.waits_for_the_write();
    }

    #[tokio::test]
    async fn create_claim() {
        let tracked = tracking(TrackedResource::PersistentVolumeClaims);
        let set = set_123().build();
        let pod = existing(&pod(&set, 0));
        let control = &tracked.world.control;
        let created = control
            .for_sync(&set)
            .create_missing_persistent_volume_claims(&pod)
            .await;
        created.unwrap();
        tracked.waits_for_the_write();
    }

    #[tokio::test]
    async fn update_claim() {
        let tracked = tracking(TrackedResource::PersistentVolumeClaims);
        let set = set_123().retention("Retain", "Delete").build();
        tracked.world.put_set(&set);
        tracked.world.put_claim(&claim(&set));
        let pod = existing(&pod(&set, 0));
        let control = &tracked.world.control;
        let updated = control
            .for_sync(&set)
            .update_pod_claim_for_retention_policy(&pod)
            .await;
        updated.unwrap();
        tracked.waits_for_the_write();
    }
}
