//! Replay of recorded API server exchanges, against the embedded server or another.

mod case;
mod projection;
mod references;
mod replay;
mod server;

use std::path::PathBuf;

use anyhow::Context as _;

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
    let runtime = runtime(against)?;
    let verdicts = cases
        .iter()
        .enumerate()
        .map(|(index, case)| runtime.block_on(judge(case, index, against)));
    Ok(verdicts.collect())
}

/// Returns the runtime of a replay: in paused time for an embedded server.
///
/// # Errors
///
/// The runtime can't be started.
pub(crate) fn runtime(against: &Against) -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all();
    if matches!(against, Against::Embedded) {
        builder.start_paused(true);
    }
    builder.build().context("start a runtime")
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
