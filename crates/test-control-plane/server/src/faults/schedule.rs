//! Frequency of a rule's matches.

use std::time::Duration;

use kube_test_control_plane_api::setters;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::duration;

/// Selects some of a rule's matches; the default is all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Schedule {
    /// Number of matches to skip first.
    #[serde(skip_serializing_if = "is_zero")]
    pub skip: u32,
    /// Then selects only each k-th match: the k-th, the 2k-th and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u32>,
    /// Selects matches with this probability, from 0 to 1, drawn by the seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Limit of selected matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Start of the rule, relative to its addition.
    #[serde(with = "duration::optional", skip_serializing_if = "Option::is_none")]
    pub after: Option<Duration>,
    /// End of the rule, relative to its addition.
    #[serde(with = "duration::optional", skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference to the member"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Schedule {
    /// Selects all matches.
    pub fn always() -> Self {
        Self::default()
    }

    /// Selects the next `limit` matches.
    pub fn times(limit: u32) -> Self {
        Self::always().limit(limit)
    }

    setters! {
        /// Skips the first matches.
        skip: u32,
        /// Selects only each k-th match.
        every: into Option<u32>,
        /// Selects matches with this probability, from 0 to 1.
        probability: into Option<f64>,
        /// Limits the number of selected matches.
        limit: into Option<u32>,
        /// Selects only matches from this time after the rule's addition.
        after: into Option<Duration>,
        /// Selects only matches before this time after the rule's addition.
        until: into Option<Duration>,
    }

    /// Selects only matches from `after` to before `until`, relative to the rule's addition.
    #[must_use]
    pub fn between(self, after: Duration, until: Duration) -> Self {
        self.after(after).until(until)
    }
}

/// A schedule in use.
#[derive(Debug)]
pub(crate) struct Running {
    schedule: Schedule,
    started: Instant,
    seen: u64,
    hits: u64,
    pub(crate) random: StdRng,
}

impl Running {
    pub(crate) fn start(schedule: Schedule, seed: u64) -> Self {
        Self {
            schedule,
            started: Instant::now(),
            seen: 0,
            hits: 0,
            random: StdRng::seed_from_u64(seed),
        }
    }

    /// Counts a match. Returns true if it is selected.
    pub(crate) fn selects_next(&mut self) -> bool {
        let schedule = self.schedule;
        let elapsed = self.started.elapsed();
        if self.is_exhausted() || schedule.after.is_some_and(|after| elapsed < after) {
            return false;
        }
        self.seen += 1;
        let Some(counted) = self.seen.checked_sub(u64::from(schedule.skip) + 1) else {
            return false;
        };
        let every = u64::from(schedule.every.unwrap_or(1).max(1));
        if counted % every != every - 1 {
            return false;
        }
        let selected = schedule.probability.is_none_or(|probability| {
            let probability = if probability.is_nan() {
                0.0
            } else {
                probability
            };
            self.random.random_bool(probability.clamp(0.0, 1.0))
        });
        self.hits += u64::from(selected);
        selected
    }

    /// Reports whether no later match can be selected.
    pub(crate) fn is_exhausted(&self) -> bool {
        let limit = self.schedule.limit;
        limit.is_some_and(|limit| self.hits >= u64::from(limit))
            || self
                .schedule
                .until
                .is_some_and(|until| self.started.elapsed() >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(schedule: Schedule, count: usize) -> String {
        let mut running = Running::start(schedule, 7);
        let mark = |selected| if selected { 'x' } else { '.' };
        (0..count).map(|_| mark(running.selects_next())).collect()
    }

    #[test]
    fn schedule_skips_counts_and_limits() {
        assert_eq!(pattern(Schedule::always(), 4), "xxxx");
        assert_eq!(pattern(Schedule::times(2), 4), "xx..");
        assert_eq!(pattern(Schedule::times(1).skip(2), 5), "..x..");
        assert_eq!(pattern(Schedule::always().every(3), 7), "..x..x.");
        assert_eq!(pattern(Schedule::always().every(2).skip(1), 6), "..x.x.");
        assert_eq!(pattern(Schedule::always().probability(0.0), 3), "...");
        assert_eq!(pattern(Schedule::always().probability(1.0), 3), "xxx");
    }

    #[test]
    fn probability_follows_the_seed() {
        let schedule = Schedule::always().probability(0.3);
        let selected = pattern(schedule, 1000);
        assert_eq!(selected, pattern(schedule, 1000));
        let hits = selected.matches('x').count();
        assert!((250..350).contains(&hits), "{hits}");
    }

    #[tokio::test(start_paused = true)]
    async fn time_window_starts_with_the_rule() {
        let second = Duration::from_secs(1);
        let schedule = Schedule::always().between(second, 3 * second);
        let mut running = Running::start(schedule, 7);
        let mut selected = Vec::new();
        for _ in 0..4 {
            selected.push(running.selects_next());
            tokio::time::advance(second).await;
        }
        assert_eq!(selected, [false, true, true, false]);
    }
}
