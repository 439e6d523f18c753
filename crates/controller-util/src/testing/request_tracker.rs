//! Call counter of fakes, with failure on request.

use std::sync::{Mutex, PoisonError};

use statefulset_client::error::Error;

/// Counts calls, fails one of them on request, and measures parallelism.
///
/// Upstream: `requestTracker`.
#[derive(Default)]
pub struct RequestTracker(Mutex<State>);

#[derive(Default)]
struct State {
    requests: usize,
    parallel: usize,
    parallel_max: usize,
    failure: Option<(usize, fn() -> Error)>,
}

/// A call in progress; ends on drop.
pub struct Request<'a>(&'a RequestTracker);

impl RequestTracker {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails one call: the first after `after` others, so that `fail_after(1, …)` fails the second
    /// call. Upstream's setters take the number of the failing call instead: `SetXError(err, 2)`.
    ///
    /// Upstream: `SetCreateStatefulPodError`, `SetUpdateStatefulPodError`,
    /// `SetDeleteStatefulPodError`, `SetUpdateStatefulSetStatusError`.
    pub fn fail_after(&self, after: usize, failure: fn() -> Error) {
        self.state().failure = Some((after, failure));
    }

    /// Begins a call.
    ///
    /// # Errors
    ///
    /// The requested failure, once.
    pub fn begin(&self) -> Result<Request<'_>, Error> {
        let mut state = self.state();
        state.requests += 1;
        if let Some((after, failure)) = state.failure
            && state.requests > after
        {
            state.failure = None;
            return Err(failure());
        }
        state.parallel += 1;
        state.parallel_max = state.parallel_max.max(state.parallel);
        drop(state);
        Ok(Request(self))
    }

    /// Number of calls, including failed ones.
    pub fn requests(&self) -> usize {
        self.state().requests
    }

    /// Maximum number of calls in parallel.
    pub fn parallel_max(&self) -> usize {
        self.state().parallel_max
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.0.state().parallel -= 1;
    }
}
