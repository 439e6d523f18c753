//! Replay of recorded API server exchanges, against the embedded server or another.

mod case;
mod projection;
mod received;
mod references;
mod replay;
mod server;
mod webhooks;

use std::path::PathBuf;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

use crate::files;
use crate::report::{Report, Verdict};

pub use case::Case;
pub use server::Against;
pub(crate) use server::Server;

/// Runs all cases of all files.
///
/// # Errors
///
/// A file can't be read, or isn't a list of cases.
pub fn run(files: &[PathBuf], against: &Against) -> anyhow::Result<Report> {
    let mut cases: Vec<Case> = Vec::new();
    for file in files {
        cases.extend(files::list(file, "recorded cases of an API server")?);
    }
    run_cases(&cases, against)
}

/// Runs cases, each in its own namespace.
///
/// # Errors
///
/// The runtime can't be started.
pub fn run_cases(cases: &[Case], against: &Against) -> anyhow::Result<Report> {
    let usual = runtime(against)?;
    // Paused time would not wait for the webhooks' connections.
    let real_time = real_time()?;
    let verdicts = cases.iter().enumerate().map(|(index, case)| {
        let runtime = if case.has_webhooks() {
            &real_time
        } else {
            &usual
        };
        runtime.block_on(judge(case, index, against))
    });
    Ok(verdicts.collect())
}

/// Returns the runtime of a replay: in paused time for an embedded server.
///
/// # Errors
///
/// The runtime can't be started.
pub(crate) fn runtime(against: &Against) -> anyhow::Result<Runtime> {
    if matches!(against, Against::Remote(_)) {
        return real_time();
    }
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build();
    runtime.context("start a runtime")
}

fn real_time() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.context("start a runtime")
}

async fn judge(case: &Case, index: usize, against: &Against) -> Verdict {
    let result = match against {
        Against::Embedded => replay::in_process(case).await,
        Against::Remote(remote) => replay::over_the_wire(case, index, remote).await,
    };
    match result {
        Ok(differences) => Verdict {
            id: case.name.clone(),
            differences,
            deviations: Vec::new(),
        },
        Err(error) => Verdict::broken(case.name.clone(), &error),
    }
}
