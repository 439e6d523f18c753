//! Time measurement.

use std::time::Duration;

use tokio::time::Instant;

/// Minimum time of a batch of repetitions.
const BATCH: Duration = Duration::from_millis(50);
/// Number of batches; the fastest one counts, because other load slows the rest.
const BATCHES: usize = 7;

/// Microseconds per call of `work`.
pub(crate) fn microseconds(mut work: impl FnMut()) -> f64 {
    let mut repetitions: u32 = 1;
    while time(repetitions, &mut work) < BATCH {
        repetitions = repetitions.saturating_mul(2);
    }
    let fastest = (0..BATCHES).map(|_| time(repetitions, &mut work)).min();
    fastest.unwrap_or_default().as_secs_f64() * 1e6 / f64::from(repetitions)
}

fn time(repetitions: u32, work: &mut impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..repetitions {
        work();
    }
    start.elapsed()
}
