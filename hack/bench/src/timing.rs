//! Time measurement, and the runtime to measure in.

use std::time::Duration;

use anyhow::Context as _;
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

/// Creates a runtime with one thread, as in most tests.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().context("start a runtime")
}

/// Milliseconds of a time.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
