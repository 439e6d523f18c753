//! Call counter of fakes, with failure on request.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use statefulset_client::error::Error;

/// A call that fakes count, and fail on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Creates a pod.
    CreatePod,
    /// Writes a pod.
    UpdatePod,
    /// Deletes a pod.
    DeletePod,
    /// Resizes the containers of a pod.
    ResizePod,
    /// Evicts a pod.
    EvictPod,
    /// Creates a claim.
    CreateClaim,
    /// Writes a claim.
    UpdateClaim,
    /// Looks a claim up in the cache.
    GetClaim,
    /// Reads a set live.
    ReadSet,
    /// Writes a status.
    UpdateStatus,
    /// Creates a revision.
    CreateRevision,
    /// Renumbers a revision.
    UpdateRevision,
    /// Deletes a revision.
    DeleteRevision,
}

/// Counts calls, fails one of a kind on request, and measures parallelism.
///
/// Upstream: `requestTracker`.
#[derive(Default)]
pub struct RequestTracker(Mutex<BTreeMap<Call, Calls>>);

/// Calls of one kind.
#[derive(Default)]
struct Calls {
    requests: usize,
    parallel: usize,
    parallel_max: usize,
    failure: Option<(usize, fn() -> Error)>,
}

/// A call in progress; ends on drop.
pub struct Request<'a>(&'a RequestTracker, Call);

impl RequestTracker {
    fn calls(&self) -> MutexGuard<'_, BTreeMap<Call, Calls>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails one call: the first after `after` others, so that `fail_after(…, 1, …)` fails the
    /// second call. Upstream's setters take the number of the failing call instead:
    /// `SetXError(err, 2)`.
    ///
    /// Upstream: `SetCreateStatefulPodError`, `SetUpdateStatefulPodError`,
    /// `SetDeleteStatefulPodError`, `SetUpdateStatefulSetStatusError`.
    pub fn fail_after(&self, call: Call, after: usize, failure: fn() -> Error) {
        self.calls().entry(call).or_default().failure = Some((after, failure));
    }

    /// Begins a call.
    ///
    /// # Errors
    ///
    /// The requested failure, once.
    pub fn begin(&self, call: Call) -> Result<Request<'_>, Error> {
        let mut all = self.calls();
        let calls = all.entry(call).or_default();
        calls.requests += 1;
        if let Some((after, failure)) = calls.failure
            && calls.requests > after
        {
            calls.failure = None;
            return Err(failure());
        }
        calls.parallel += 1;
        calls.parallel_max = calls.parallel_max.max(calls.parallel);
        drop(all);
        Ok(Request(self, call))
    }

    /// Number of calls of a kind, including failed ones.
    pub fn requests(&self, call: Call) -> usize {
        self.calls().get(&call).map_or(0, |calls| calls.requests)
    }

    /// Maximum number of calls of a kind in parallel.
    pub fn parallel_max(&self, call: Call) -> usize {
        self.calls()
            .get(&call)
            .map_or(0, |calls| calls.parallel_max)
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.0.calls().entry(self.1).or_default().parallel -= 1;
    }
}
