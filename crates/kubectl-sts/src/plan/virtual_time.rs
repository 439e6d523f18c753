//! Simulations in virtual time.

use anyhow::{Context as _, anyhow};

/// Runs a future on a separate runtime with a paused clock.
pub(super) fn in_virtual_time<T: Send, F: Future<Output = anyhow::Result<T>>>(
    future: impl FnOnce() -> F + Send,
) -> anyhow::Result<T> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .context("start the simulation")?;
        runtime.block_on(future())
    };
    std::thread::scope(|scope| {
        let ended = scope.spawn(run).join();
        ended.unwrap_or_else(|_| Err(anyhow!("the simulation failed; report this as a bug")))
    })
}
