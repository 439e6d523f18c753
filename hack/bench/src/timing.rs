//! How long something takes.

use std::time::Duration;

use tokio::time::Instant;

/// How long a batch of repetitions takes at least.
const BATCH: Duration = Duration::from_millis(50);
/// How many batches are made; the fastest one counts, as others shared the machine with something.
const BATCHES: usize = 7;

/// The microseconds that `work` takes.
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
