//! Measurements of syncs.

use std::sync::Arc;

use kube_apimachinery::object_key::ObjectKey;
use serde_json::json;
use statefulset_controller::metrics::{SetMetrics, Unavailability};
use statefulset_controller_util::consistency::{MockConsistencyStore, StaleCache, TrackedResource};
use statefulset_controller_util::stateful_set::PodManagementPolicy;
use statefulset_set_control::{Error as UpdateError, SyncOutcome};

use crate::fixture::{Fixture, Log, internal_error, key};

impl SetMetrics for Log {
    fn counted(
        &self,
        set: &ObjectKey,
        policy: PodManagementPolicy,
        Unavailability { max, current }: Unavailability,
    ) {
        self.push(format!("{set} {policy:?}: {current:?} of {max}"));
    }

    fn gone(&self, set: &ObjectKey) {
        self.push(format!("{set} is gone"));
    }

    fn stale_sync_skipped(&self, resource: TrackedResource) {
        self.push(format!("{resource} behind"));
    }
}

/// A fixture and its recorded measurements.
fn fixture() -> (Fixture, Log) {
    let counts = Log::default();
    let fixture = Fixture {
        metrics: Arc::new(counts.clone()),
        ..Fixture::default()
    };
    (fixture, counts)
}

#[tokio::test]
async fn sync_reports_counts_even_if_it_fails() {
    let (fixture, counts) = fixture();
    fixture.add_set(|set| set["spec"]["podManagementPolicy"] = json!("Parallel"));
    let outcome = |max, current, fails: bool| {
        move || {
            let mut outcome = SyncOutcome::default();
            outcome.max_unavailable = max;
            outcome.unavailable_replicas = current;
            outcome.error = fails.then(|| UpdateError::Status(internal_error()));
            outcome
        }
    };
    fixture
        .sync(outcome(Some(2), Some(1), false))
        .await
        .unwrap();
    fixture
        .sync(outcome(Some(2), None, true))
        .await
        .unwrap_err();
    // Without the gate, the sync counts nothing.
    fixture.sync(outcome(None, None, false)).await.unwrap();
    let parallel = |count: &str| format!("ns/web Parallel: {count} of 2");
    assert_eq!(counts.take(), [parallel("Some(1)"), parallel("None")]);
}

#[tokio::test]
async fn missing_sets_metrics_are_removed() {
    let (fixture, counts) = fixture();
    fixture.sync_quietly().await.unwrap();
    assert_eq!(counts.take(), [format!("{} is gone", key())]);
}

#[tokio::test]
async fn postponed_sync_is_counted_per_stale_cache() {
    for (stale, expected) in [
        (
            StaleCache::Older {
                read: "1".to_owned(),
                written: "2".to_owned(),
                resource: TrackedResource::StatefulSets,
            },
            "statefulsets.apps behind",
        ),
        (
            StaleCache::PodDeleted {
                pod: ObjectKey::new("ns", "web-0"),
            },
            "pods behind",
        ),
    ] {
        let (mut fixture, counts) = fixture();
        let mut consistency = MockConsistencyStore::new();
        consistency
            .expect_ensure_ready()
            .returning(move |_| Err(stale.clone()));
        fixture.consistency = Arc::new(consistency);
        fixture.sync_quietly().await.unwrap_err();
        assert_eq!(counts.take(), [expected]);
    }
}
