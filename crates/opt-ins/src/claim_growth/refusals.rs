//! Refused requests, and the time of the next attempt.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::state::ClaimState;
use crate::due::{after, time_left};

/// Delay before the second attempt.
const DELAY_MIN: Duration = Duration::from_secs(30);

/// Longest delay between two attempts. Nothing reports that a class or a quota was changed.
const DELAY_MAX: Duration = Duration::from_secs(10 * 60);

/// The refused requests of a process, by the uid of the claim or of the set. Takes memory for those
/// alone; a new process asks again.
#[derive(Debug, Default)]
pub struct ClaimRefusals(Mutex<BTreeMap<Box<str>, Refusal>>);

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The desired size in bytes.
    pub(super) wanted: i64,
    /// The kind of the refusal.
    pub(super) state: ClaimState,
    /// The server's reason; empty if the state says it all.
    pub(super) message: Box<str>,
    /// Time of the next attempt.
    pub(super) retry_at: Timestamp,
    delay: Duration,
}

impl Refusal {
    /// Returns the time until the next attempt; `None` once it is due. A clock that was set back delays
    /// it by no more than the longest delay.
    pub(super) fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        time_left(self.retry_at, now).filter(|left| *left <= DELAY_MAX)
    }
}

impl ClaimRefusals {
    /// Returns the refusal of this size.
    pub(super) fn get(&self, uid: &str, wanted: i64) -> Option<Refusal> {
        let refused = self.lock();
        refused.get(uid).filter(|it| it.wanted == wanted).cloned()
    }

    /// Records a refusal, with a longer delay than the last one of this size. Returns true if the last
    /// one had another reason, or there was none.
    pub(super) fn record(
        &self,
        uid: &str,
        wanted: i64,
        state: ClaimState,
        message: &str,
        now: Timestamp,
    ) -> bool {
        let mut refused = self.lock();
        // Claims that were deleted or grew are forgotten this way.
        refused.retain(|_, it| time_left(after(it.retry_at, DELAY_MAX * 2), now).is_some());
        let last = refused.get(uid).filter(|it| it.wanted == wanted);
        let is_new = last.is_none_or(|last| last.state != state || *last.message != *message);
        let delay = last.map_or(DELAY_MIN, |last| (last.delay * 2).min(DELAY_MAX));
        let refusal = Refusal {
            wanted,
            state,
            message: message.into(),
            retry_at: after(now, delay),
            delay,
        };
        refused.insert(uid.into(), refusal);
        is_new
    }

    /// Forgets a refusal after a success.
    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Refusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
