//! State for reads: the stored objects and their kinds, without a way to change them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube_test_control_plane_api::custom::by_priority;
use kube_test_control_plane_api::kinds::{KINDS, Kind};
use kube_test_control_plane_store::clock::Clock;
use kube_test_control_plane_store::store::StoreReader;
use rand::RngExt;
use tokio_util::sync::CancellationToken;

use super::behaviour::Behaviour;
use super::conversions::Conversions;
use super::custom::{CustomIndex, CustomKinds};
use super::random::Source;
#[cfg(feature = "cel")]
use crate::admission::policy_index::Policies;
use crate::admission::{Phase, Webhooks};

/// The shortest default timeout of a watch; the longest is twice that.
const DEFAULT_TIMEOUT_SECONDS: u64 = 1800;

/// The stored objects, read-only.
#[derive(Debug)]
pub(crate) struct Reads {
    pub(crate) store: StoreReader,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) behaviour: Mutex<Behaviour>,
    pub(super) custom: CustomKinds,
    /// The compiled admission policies.
    #[cfg(feature = "cel")]
    pub(crate) policies: Policies,
    /// The webhooks, and the way to their servers.
    pub(crate) webhooks: Webhooks,
    /// The latest conversions of custom resources by webhooks.
    pub(crate) conversions: Conversions,
    /// Watches from an earlier revision get 410.
    pub(super) watch_floor: AtomicU64,
    pub(super) timeouts: Source,
    pub(super) reviews: Source,
    /// Interval of bookmarks.
    pub(crate) bookmark_interval: Duration,
    /// True if clients may select shards of a collection.
    pub(crate) has_shards: bool,
    /// Cancelled when the server stops.
    pub(crate) stopping: CancellationToken,
}

impl Reads {
    /// Returns the earliest revision from which a watch may start.
    pub(crate) fn watch_floor(&self) -> u64 {
        self.watch_floor.load(Ordering::Relaxed)
    }

    pub(super) fn raise_watch_floor(&self) {
        self.watch_floor
            .store(self.store.revision(), Ordering::Relaxed);
    }

    /// Returns the clock of timestamps.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Returns a default timeout for a watch, in seconds.
    pub(crate) fn watch_timeout(&self) -> u64 {
        let extra = |source: &mut _| RngExt::random_range(source, 0..DEFAULT_TIMEOUT_SECONDS);
        DEFAULT_TIMEOUT_SECONDS + self.timeouts.draw(extra)
    }

    /// Returns a new uid of a webhook's review.
    pub(crate) fn new_review_uid(&self) -> String {
        self.reviews.uid()
    }

    /// Returns the current behaviour.
    pub(crate) fn behaviour(&self) -> Behaviour {
        *self.lock_behaviour()
    }

    pub(super) fn lock_behaviour(&self) -> MutexGuard<'_, Behaviour> {
        let behaviour = self.behaviour.lock();
        behaviour.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a policy or a webhook configuration was ever stored. Nearly all servers have none.
    pub(crate) fn has_reviews(&self) -> bool {
        self.store.admission_revision() > 0
    }

    /// Returns false if no stored policy or webhook reviews requests to a resource of this name in a
    /// phase, at a revision (`None` being the newest).
    pub(crate) fn is_reviewed(&self, phase: Phase, plural: &str, at: Option<u64>) -> bool {
        #[cfg(feature = "cel")]
        let has_policy = || self.policies.index(&self.store, at).reviews(phase, plural);
        #[cfg(not(feature = "cel"))]
        let has_policy = || false;
        let has_webhook = || self.webhooks.index(&self.store, at).reviews(phase, plural);
        self.has_reviews() && (has_policy() || has_webhook())
    }

    /// Returns the rows of the custom resources.
    pub(crate) fn custom_kinds(&self) -> Arc<CustomIndex> {
        self.custom.index(&self.store)
    }

    /// Returns all served rows: the built-in ones, then those of custom resources.
    pub(crate) fn served_kinds(&self) -> Vec<Arc<Kind>> {
        let custom = self.custom_kinds();
        let mut rows: Vec<&Arc<Kind>> = custom.rows().collect();
        rows.sort_by(|one, other| {
            let groups = one.group.cmp(&other.group);
            groups.then_with(|| by_priority(&one.version, &other.version))
        });
        KINDS.iter().chain(rows).map(Arc::clone).collect()
    }
}
