//! Signal handling: the first signal shuts down gracefully, the second exits immediately.

use std::process::ExitCode;

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code after a second signal, the shells' code for an interrupt.
const EXIT_CODE_FORCED: u8 = 130;

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal; returns its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Runs the work to its end. The first signal cancels the work's token, the second drops the work.
///
/// # Errors
///
/// Errors of the work, or signal handlers can't be installed.
///
/// Upstream: `SetupSignalHandler`.
pub(crate) async fn supervise<W>(
    work: impl FnOnce(CancellationToken) -> W,
) -> anyhow::Result<ExitCode>
where
    W: Future<Output = anyhow::Result<()>>,
{
    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    let work = work(stop.clone());
    tokio::pin!(work);
    tokio::select! {
        result = &mut work => return result.map(|()| ExitCode::SUCCESS),
        signal = signals.next() => {
            tracing::info!(signal, "shutting down, a second signal exits immediately");
            stop.cancel();
        }
    }
    tokio::select! {
        result = &mut work => result.map(|()| ExitCode::SUCCESS),
        signal = signals.next() => {
            tracing::warn!(signal, "exiting immediately");
            Ok(ExitCode::from(EXIT_CODE_FORCED))
        }
    }
}
