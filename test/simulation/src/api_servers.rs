//! The API servers of a run with a fence. Each applies changes of the label and the policies at its
//! own time, and in their order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use statefulset_fence::Policy;
use statefulset_fence::names::SYSTEM_NAMESPACE;
use tokio::time::Instant;

use crate::plan::{FencePart, PartState, Span};
use crate::seed;

/// Number of API servers.
pub const SERVERS: usize = 2;

/// Returns the API server of a process: the processes of an instance take turns.
pub fn server_of(instance: usize, life: u32) -> usize {
    (instance + usize::try_from(life).unwrap_or_default()) % SERVERS
}

/// The label of the namespace, and the policies and bindings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FenceState {
    /// True while the namespace has the label.
    pub is_labelled: bool,
    /// The parts that are as shipped.
    pub shipped: BTreeMap<FencePart, bool>,
}

impl FenceState {
    fn is_shipped(&self, part: FencePart) -> bool {
        self.shipped.get(&part).copied().unwrap_or_default()
    }

    /// True if the built-in controller's writes are denied in the namespace.
    pub fn denies_built_in(&self) -> bool {
        let parts = [FencePart::Fence, FencePart::FenceBinding];
        self.is_labelled && parts.into_iter().all(|part| self.is_shipped(part))
    }

    fn has_mirror(&self) -> bool {
        let parts = [FencePart::Mirror, FencePart::MirrorBinding];
        parts.into_iter().all(|part| self.is_shipped(part))
    }

    /// True if the instances' writes are denied in the namespace.
    pub fn denies_instances(&self) -> bool {
        self.has_mirror() && !self.is_labelled
    }

    /// True if the instances may serve the namespace.
    pub fn stands(&self) -> bool {
        self.denies_built_in() && self.has_mirror()
    }

    /// True if a policy denies its probe in this namespace.
    pub fn denies_probe(&self, policy: Policy, namespace: &str) -> bool {
        let is_system = namespace == SYSTEM_NAMESPACE;
        match policy {
            Policy::Fence => !is_system && self.denies_built_in(),
            Policy::Mirror => self.has_mirror() && (is_system || !self.is_labelled),
        }
    }
}

/// A change of the label or a part.
#[derive(Clone, Debug)]
pub struct FenceChange {
    /// Time of the change after the start of the run.
    pub at: Duration,
    /// Time at which each API server applies it.
    pub applied: [Duration; SERVERS],
    /// The state afterwards.
    pub state: FenceState,
}

/// Returns the state at a time, by the times of the changes; nothing exists before the first.
pub fn state_at(
    changes: &[FenceChange],
    at: Duration,
    time: impl Fn(&FenceChange) -> Duration,
) -> FenceState {
    let known = changes.partition_point(|change| time(change) <= at);
    let last = known.checked_sub(1).and_then(|last| changes.get(last));
    last.map(|change| change.state.clone()).unwrap_or_default()
}

/// The API servers.
#[derive(Clone)]
pub struct ApiServers(Arc<Mutex<Inner>>);

struct Inner {
    began: Instant,
    random: StdRng,
    lag: Span,
    changes: Vec<FenceChange>,
}

impl ApiServers {
    /// Creates the API servers of a run that begins now.
    pub fn new(seed: u64, lag: Span) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            began: Instant::now(),
            random: seed::stream(seed, "api servers"),
            lag,
            changes: Vec::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut FenceState)) {
        let mut inner = self.lock();
        let at = inner.began.elapsed();
        let last = inner.changes.last().cloned();
        let mut state = last.as_ref().map(|it| it.state.clone()).unwrap_or_default();
        change(&mut state);
        let mut applied = last.map_or([Duration::ZERO; SERVERS], |it| it.applied);
        for applied in &mut applied {
            let lag = inner.lag;
            *applied = (at + lag.draw(&mut inner.random)).max(*applied);
        }
        inner.changes.push(FenceChange { at, applied, state });
    }

    /// Records that the namespace got or lost the label.
    pub fn label(&self, is_labelled: bool) {
        self.change(|state| state.is_labelled = is_labelled);
    }

    /// Records the state of a part.
    pub fn part(&self, part: FencePart, now: PartState) {
        self.change(|state| {
            state.shipped.insert(part, now == PartState::Shipped);
        });
    }

    /// Returns the state that an API server applies now.
    pub fn seen_by(&self, server: usize) -> FenceState {
        let inner = self.lock();
        let now = inner.began.elapsed();
        state_at(&inner.changes, now, |it| {
            it.applied.get(server).copied().unwrap_or_default()
        })
    }

    /// Returns the changes in their order.
    pub fn changes(&self) -> Vec<FenceChange> {
        self.lock().changes.clone()
    }
}
