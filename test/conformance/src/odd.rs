//! Recorded odd objects: raw bytes sent to a real API server, and upstream's reaction.

pub mod case;
pub mod controller;
pub mod fuzz;
mod members;
mod ordinary;
mod program;
pub mod server_side;
pub mod stage;

use std::path::PathBuf;

use anyhow::Context as _;

use crate::files::lines;
use crate::report::{Report, Verdict};
use case::Case;

/// Replays the requests of all cases of all files against the embedded API server.
///
/// # Errors
///
/// A file can't be read, or has another format.
pub fn run_server_side(files: &[PathBuf]) -> anyhow::Result<Report> {
    let mut report = Report::default();
    for case in read(files)? {
        report.append(judge_server_side(&case));
    }
    Ok(report)
}

/// Rule name for cases without stored objects.
const NOTHING_STORED: &str = "a case without stored objects";

/// Serves the stored objects of all cases of all files to the real controller.
///
/// # Errors
///
/// A file can't be read, or has another format.
pub fn run_controller(files: &[PathBuf]) -> anyhow::Result<Report> {
    Ok(serve_to_controller(&read(files)?))
}

/// Serves the stored objects of each case to the real controller.
pub fn serve_to_controller<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Report {
    let mut report = Report::default();
    for case in cases {
        if case.controller.is_none() {
            *report.left_out.entry(NOTHING_STORED).or_default() += 1;
            continue;
        }
        let run = || paused_runtime()?.block_on(controller::run(case));
        let verdict = run().unwrap_or_else(|error| Verdict::broken(case.id.clone(), &error));
        report.append(Report::from_iter([verdict]));
    }
    report
}

/// Reads the cases of files.
///
/// # Errors
///
/// A file can't be read, or has another format.
pub fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for file in files {
        for (index, line) in lines(file)?.iter().enumerate() {
            let place = || format!("{}, line {}", file.display(), index + 1);
            cases.push(Case::parse(line).with_context(place)?);
        }
    }
    Ok(cases)
}

fn judge_server_side(case: &Case) -> Report {
    match paused_runtime().and_then(|runtime| runtime.block_on(server_side::run(case))) {
        Ok(outcome) => outcome.into_report(case),
        Err(error) => Report::from_iter([Verdict::broken(case.id.clone(), &error)]),
    }
}

/// A runtime whose time advances only when idle.
///
/// # Errors
///
/// The runtime can't be started.
fn paused_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let builder = builder.enable_all().start_paused(true);
    builder.build().context("start a runtime")
}
