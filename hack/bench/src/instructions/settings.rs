//! Settings of the counted work.

use tokio::runtime::Runtime;

/// Repetitions to warm up, and counted ones. The cost of an allocation depends on the state of the
/// heap, so a single one would also measure the heap left by the setup.
pub(super) const REPETITIONS: u32 = 20;
/// Other sets' pods in the namespace of most work.
pub(super) const OTHERS: usize = 100;

pub(super) fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?)
}
