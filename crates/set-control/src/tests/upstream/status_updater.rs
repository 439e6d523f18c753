//! Status writes through the API. Upstream's updater changes the caller's set; here the stored set
//! shows the write.

use std::sync::Arc;

use statefulset_client::backoff::NoJitter;
use statefulset_client::cache::indexer::Indexer;
use statefulset_client::error::Error;
use statefulset_client::fake::{CallError, CallFault, FakeClientset, Verb};
use statefulset_client::resource::STATEFUL_SETS;
use statefulset_controller_util::consistency::{
    ConsistencyStore, RealConsistencyStore, TrackedResource,
};
use statefulset_controller_util::stateful_set::{StatefulSet, StatefulSetStatus};
use statefulset_controller_util::testing::upstream::set;
use statefulset_controller_util::testing::{FakeCaches, WriteLog};
use statefulset_controller_util::tracked_client::TrackedClient;

use crate::stateful_set_status_updater::{RealStatusUpdater, StatusUpdater as _};

struct ApiUpdater {
    api: FakeClientset,
    set: StatefulSet,
    updater: RealStatusUpdater,
}

/// An API server that stores the set with this version, and an updater with a cache of sets.
fn api_updater(
    is_cached: bool,
    version: &str,
    consistency: Arc<dyn ConsistencyStore>,
) -> ApiUpdater {
    let builder = set(3).with("metadata.resourceVersion", version);
    let (set, api) = (builder.build(), FakeClientset::new());
    api.load(&STATEFUL_SETS, builder.text());
    let cache = Arc::new(Indexer::new());
    if is_cached {
        cache.add(set.clone());
    }
    let client = TrackedClient::new(api.rest_client(), consistency);
    let updater = RealStatusUpdater::new(client, cache, Arc::new(NoJitter));
    ApiUpdater { api, set, updater }
}

fn cached() -> ApiUpdater {
    api_updater(true, "1", Arc::new(WriteLog::default()))
}

fn uncached() -> ApiUpdater {
    api_updater(false, "1", Arc::new(WriteLog::default()))
}

fn status() -> StatefulSetStatus {
    StatefulSetStatus {
        observed_generation: 1,
        replicas: 2,
        ..StatefulSetStatus::default()
    }
}

impl ApiUpdater {
    fn fail(&self, times: u32, error: CallError) {
        let rule = CallFault::new(Verb::Update, "statefulsets", times, error);
        self.api.fail(rule.on("status"));
    }

    async fn update(&self, status: &StatefulSetStatus) -> Result<(), Error> {
        let written = self.updater.update_stateful_set_status(&self.set, status);
        written.await
    }

    /// Returns a field of the stored status.
    fn stored(&self, member: &str) -> i64 {
        let stored = self.api.object(&STATEFUL_SETS, "default", "foo").unwrap();
        stored["status"][member].as_i64().unwrap_or(0)
    }

    fn requests(&self) -> usize {
        self.api.actions().len()
    }
}

#[tokio::test]
async fn test_stateful_set_updater_updates_set_status() {
    let updater = uncached();
    updater.update(&status()).await.unwrap();
    assert_eq!(updater.stored("replicas"), 2);
    assert_eq!(updater.requests(), 1);
}

#[tokio::test]
async fn test_stateful_set_status_updater_updates_observed_generation() {
    let updater = uncached();
    let status = StatefulSetStatus {
        observed_generation: 3,
        ..status()
    };
    updater.update(&status).await.unwrap();
    assert_eq!(
        updater.api.actions()[0].json()["status"]["observedGeneration"],
        3
    );
    assert_eq!(updater.stored("observedGeneration"), 3);
}

#[tokio::test]
async fn test_stateful_set_status_updater_update_replicas_failure() {
    let updater = cached();
    updater.fail(u32::MAX, CallError::InternalError);
    let error = updater.update(&status()).await.unwrap_err();
    // Upstream accepts any error and doesn't count the attempts.
    assert!(!error.is_conflict(), "{error}");
    assert_eq!(updater.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_status_updater_update_replicas_conflict() {
    let updater = cached();
    updater.fail(1, CallError::Conflict);
    updater.update(&status()).await.unwrap();
    assert_eq!(updater.stored("replicas"), 2);
    assert_eq!(updater.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn test_stateful_set_status_updater_update_replicas_conflict_failure() {
    let updater = cached();
    updater.fail(u32::MAX, CallError::Conflict);
    let error = updater.update(&status()).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(updater.requests(), 5);
}

#[tokio::test]
async fn test_stateful_set_status_updater_get_available_replicas() {
    let updater = uncached();
    let status = StatefulSetStatus {
        available_replicas: 3,
        ..status()
    };
    updater.update(&status).await.unwrap();
    assert_eq!(updater.stored("availableReplicas"), 3);
}

#[tokio::test]
async fn test_stateful_set_status_updater_consistency_store() {
    let caches = Arc::new(FakeCaches::default());
    let sets = TrackedResource::StatefulSets;
    caches.set_version(sets, "1");
    let store = Arc::new(RealConsistencyStore::new(
        Arc::<FakeCaches>::clone(&caches) as _
    ));
    let updater = api_updater(false, "1", Arc::<RealConsistencyStore>::clone(&store));
    updater.api.react(Verb::Update, "statefulsets", |_| {
        Some(Ok(set(3).with("metadata.resourceVersion", "2").text()))
    });
    let key = updater.set.key();
    store.ensure_ready(&key).unwrap();
    updater.update(&status()).await.unwrap();
    assert!(store.ensure_ready(&key).is_err());
    caches.set_version(sets, "2");
    store.ensure_ready(&key).unwrap();
}
