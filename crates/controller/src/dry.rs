//! Dry syncs: one sync of a set whose requests get their responses inside the process. Reads see the
//! caches and the sync's own writes; no write reaches a server.
//!
//! Tools use them to predict the controller's next step.

mod answers;
mod objects;
mod write;

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::backoff::SeededJitter;
use statefulset_client::clock::Clock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::NoopRecorder;
use statefulset_client::rest::RestClient;
use statefulset_controller_util::consistency::Caches;
use statefulset_set_control::SyncOutcome;
use tower::service_fn;

use crate::error::Error;
use crate::stateful_set::{SetSyncer, SyncerParts};
use answers::Answers;
pub(crate) use objects::texts;
pub use write::{DryVerb, DryWrite};

/// The result of a dry sync.
#[derive(Debug)]
#[non_exhaustive]
pub struct DrySync {
    /// The writes that the controller would send, in order; without status writes and events.
    pub writes: Vec<DryWrite>,
    /// Body of the status write, if the sync writes one.
    pub status: Option<String>,
    /// The sync's own result.
    pub outcome: Result<SyncOutcome, Error>,
}

/// A constant time.
struct Moment(Timestamp);

impl Clock for Moment {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// Syncs one set at a time of the caller's choice. Every request succeeds, unless the caches
/// contradict it: a missing object is not found, and an existing one can't be created.
///
/// The caches must hold all objects of the set, and pods with the names of its pods. The sync does
/// not change them.
pub async fn dry_sync(
    caches: &Caches,
    key: &ObjectKey,
    now: Timestamp,
    gates: FeatureGates,
) -> DrySync {
    let answers = Arc::new(Answers::new(caches.clone()));
    let service = {
        let answers = Arc::clone(&answers);
        service_fn(move |request| {
            let answers = Arc::clone(&answers);
            async move { answers.answer(request).await }
        })
    };
    // The caches never show the writes of an earlier dry sync.
    let gates = gates.stale_controller_consistency_stateful_set(false);
    let parts = SyncerParts::new(
        caches.clone(),
        &RestClient::from_service(service),
        Arc::new(NoopRecorder),
        Arc::new(Moment(now)),
        Arc::new(SeededJitter::new(0)),
        gates,
    );
    let outcome = SetSyncer::new(parts).sync_guarded(key).await;
    let (writes, status) = answers.take_writes();
    DrySync {
        writes,
        status,
        outcome,
    }
}

#[cfg(test)]
mod tests;
