//! The times that a controller takes to react to pods.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Pods that are expected next, with the time of the cause, and the measured times.
#[derive(Debug, Default)]
pub(crate) struct Reactions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    expected: HashMap<String, Instant>,
    measured: Vec<Duration>,
}

impl Reactions {
    /// Notes that a pod is ready: in an ordered set the next one follows.
    pub(crate) fn ready(&self, pod: &str) {
        let next = pod.rsplit_once('-').and_then(|(set, ordinal)| {
            let ordinal: u32 = ordinal.parse().ok()?;
            Some(format!("{set}-{}", ordinal + 1))
        });
        if let Some(next) = next {
            self.expect(next);
        }
    }

    /// Notes that a pod is gone: in a rollout its replacement follows.
    pub(crate) fn gone(&self, pod: &str) {
        self.expect(pod.to_owned());
    }

    /// Notes a new pod.
    pub(crate) fn created(&self, pod: &str) {
        let mut state = self.state();
        if let Some(cause) = state.expected.remove(pod) {
            state.measured.push(cause.elapsed());
        }
    }

    /// Returns the times since the last call, sorted.
    pub(crate) fn take(&self) -> Vec<Duration> {
        let mut measured = std::mem::take(&mut *self.state()).measured;
        measured.sort_unstable();
        measured
    }

    fn expect(&self, pod: String) {
        self.state().expected.insert(pod, Instant::now());
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a percentile of sorted times (nearest rank).
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn next_pods_and_replacements_are_measured() {
        let reactions = Reactions::default();
        reactions.ready("web-0");
        reactions.gone("db-9");
        tokio::time::advance(Duration::from_millis(5)).await;
        reactions.created("web-1");
        tokio::time::advance(Duration::from_millis(5)).await;
        reactions.created("db-9");
        reactions.created("db-7");
        let measured = [5, 10].map(Duration::from_millis);
        assert_eq!(reactions.take(), measured);
        assert!(reactions.take().is_empty());
    }

    #[test]
    fn percentiles_are_measured_times() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 50), Some(Duration::from_millis(100)));
        assert_eq!(percentile(&times, 99), Some(Duration::from_millis(198)));
        assert_eq!(percentile(&[], 99), None);
    }
}
