//! Replay of kubectl sessions against the shipped control plane and controller.

mod client;
mod cluster;
mod compare;
mod programs;
pub mod script;
mod session;

use std::path::PathBuf;

use anyhow::Context as _;

use crate::files;
use crate::report::{Report, Verdict};

pub use client::find as find_kubectl;
use cluster::RunningPrograms;
use compare::compare;
pub use programs::Programs;
pub use session::{Session, Step};

/// Runs all sessions of all files; each command is a case.
///
/// # Errors
///
/// A file can't be read or has no session, or the programs can't be started.
pub fn run(files: &[PathBuf], programs: &Programs) -> anyhow::Result<Report> {
    let sessions: Vec<Session> = files
        .iter()
        .map(|file| files::one(file, "a kubectl session"))
        .collect::<anyhow::Result<_>>()?;
    let mut report = Report::default();
    for session in &sessions {
        report.append(run_session(session, programs)?);
    }
    Ok(report)
}

/// Runs the commands of a session in order, against its own control plane.
///
/// # Errors
///
/// The programs can't be started.
pub fn run_session(session: &Session, programs: &Programs) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start a runtime")?;
    runtime.block_on(async {
        let cluster = RunningPrograms::start(session, programs).await?;
        let mut verdicts = Vec::new();
        for step in &session.steps {
            judge(&cluster, step, &mut verdicts).await;
        }
        cluster.stop().await;
        Ok(verdicts.into_iter().collect())
    })
}

/// Runs a step, and the steps during it.
async fn judge(cluster: &RunningPrograms, step: &Step, verdicts: &mut Vec<Verdict>) {
    let result = async {
        if step.settle {
            cluster.settle().await?;
        }
        let Some(during) = &step.during else {
            return cluster.kubectl(step).await;
        };
        let watch = cluster.start_watch(step)?;
        cluster.settle().await?;
        for step in during {
            Box::pin(judge(cluster, step, verdicts)).await;
        }
        cluster.settle().await?;
        cluster.end_watch(watch, step.exit).await
    };
    let result = result.await;
    let id = step.command.clone();
    verdicts.push(match result {
        Ok(finished) => Verdict {
            id,
            differences: compare(step, &finished),
            deviations: Vec::new(),
        },
        Err(error) => Verdict::broken(id, &error),
    });
}
