//! Reasons for a sync to stop early, as a success or as an error that is retried.

use std::sync::Arc;

use serde_json::{Value, json};
use statefulset_controller::Error;
use statefulset_controller_util::consistency::{
    ConsistencyStore, MockConsistencyStore, RealConsistencyStore, StaleCache, TrackedResource,
};
use statefulset_set_control::{Error as UpdateError, SyncOutcome, Waiting};

use crate::fixture::{Fixture, at, internal_error, key, orphan, owned};

#[tokio::test]
async fn missing_set_succeeds_and_clears_its_writes() {
    let mut consistency = MockConsistencyStore::new();
    consistency
        .expect_ensure_ready()
        .once()
        .returning(|_| Ok(()));
    consistency
        .expect_clear()
        .once()
        .withf(|owner| *owner == key())
        .return_const(());
    let fixture = Fixture {
        consistency: Arc::new(consistency),
        ..Fixture::default()
    };
    fixture.add_pod(orphan("web-0"));
    let synced = fixture.sync_quietly().await.unwrap();
    assert_eq!(synced.waiting, Some(Waiting::SetGone));
    assert!(fixture.log.take().is_empty());
}

#[tokio::test]
async fn invalid_selector_stops_the_sync_without_error() {
    let fixture = Fixture::default();
    let bad = json!({"matchExpressions": [{"key": "app", "operator": "Like"}]});
    fixture.add_set(|set| set["spec"]["selector"] = bad);
    fixture.add_pod(orphan("web-0"));
    fixture.add_revision("web-a", false);
    let synced = fixture.sync_quietly().await.unwrap();
    assert!(matches!(synced.waiting, Some(Waiting::InvalidSelector(..))));
    assert_eq!(synced.requeue_after, None);
    assert!(fixture.log.take().is_empty());
}

#[tokio::test]
async fn missing_selector_selects_none_and_empty_selects_all() {
    for (selector, expected) in [
        (
            Value::Null,
            ["release web-0", "update web with [] at 0"].as_slice(),
        ),
        (json!({}), &["update web with [web-0] at 0"]),
    ] {
        let fixture = Fixture::default();
        fixture.add_set(|set| set["spec"]["selector"] = selector);
        fixture.add_pod(owned("web-0"));
        fixture.sync_quietly().await.unwrap();
        assert_eq!(fixture.log.take(), expected);
    }
}

#[tokio::test]
async fn sync_waits_for_the_caches_to_show_its_writes() {
    let mut fixture = Fixture::default();
    let store = Arc::new(RealConsistencyStore::new(Arc::new(fixture.caches.clone())));
    fixture.consistency = Arc::clone(&store) as _;
    fixture.add_set(|_| {});
    fixture.caches.pods.bookmark("9");
    store.wrote_at(&key(), "web-uid", TrackedResource::Pods, "10");

    let error = fixture.sync_quietly().await.unwrap_err();
    assert!(
        matches!(error, Error::StaleCache(StaleCache::Older { .. })),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "read version: 9 is not as new as written version: 10 for group resource pods"
    );
    assert!(fixture.log.take().is_empty());

    fixture.caches.pods.bookmark("10");
    fixture.sync_quietly().await.unwrap();
    assert_eq!(fixture.log.take(), ["update web with [] at 0"]);
}

#[tokio::test]
async fn set_controls_outcome_is_returned() {
    let fixture = Fixture::default();
    fixture.clock.set(at(7));
    fixture.add_set(|_| {});
    let waiting = || Waiting::PodNotReady("web-0".into());
    let outcome = move || SyncOutcome::from(waiting());
    let synced = fixture.sync(outcome).await.unwrap();
    assert_eq!(synced.waiting, Some(waiting()));
    assert_eq!((synced.status, synced.requeue_after), (None, None));
    assert_eq!(fixture.log.take(), ["update web with [] at 7"]);
}

#[tokio::test]
async fn set_controls_error_fails_the_sync_despite_a_status() {
    let fixture = Fixture::default();
    fixture.add_set(|set| set["spec"]["minReadySeconds"] = 5.into());
    let outcome = || {
        let mut outcome = SyncOutcome::from(UpdateError::Status(internal_error()));
        outcome.status = Some(crate::requeue::status(2, 1));
        outcome
    };
    let error = fixture.sync(outcome).await.unwrap_err();
    assert!(matches!(error, Error::Update(_)));
    assert_eq!(error.to_string(), "boom");
}
