//! Replay of recorded writes of single objects against the embedded API server: each is a dry run
//! that shows how the server validates, defaults, prunes and warns.

mod case;
mod compare;
mod difference;
mod revision_names;
mod stage;

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Context as _;
use tokio::runtime::Runtime;

use crate::files::lines;
use crate::report::{Report, Verdict};

pub use case::Case;
pub use difference::Category;
use stage::Stage;

/// Number of cases between two lines of progress.
const PROGRESS: usize = 1000;

/// Runs all cases of all files.
///
/// # Errors
///
/// A file can't be read or has another format, or no server can be started.
pub fn run(files: &[PathBuf]) -> anyhow::Result<Report> {
    let cases = read(files)?;
    let done = AtomicUsize::new(0);
    let all = cases.len();
    run_cases(&cases, &|| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(PROGRESS) {
            #[expect(clippy::print_stderr, reason = "the runner's progress")]
            {
                eprintln!("conformance: {done} of {all} cases");
            }
        }
    })
}

/// Creates the sets of files, and compares the names of their revisions with those that upstream's
/// controller made on kube-apiserver.
///
/// # Errors
///
/// A file can't be read or has another format, or no server can be started.
pub fn run_revision_names(files: &[PathBuf]) -> anyhow::Result<Report> {
    let runtime = paused_runtime()?;
    let stage = runtime.block_on(Stage::start())?;
    Report::of(files, |line| {
        runtime.block_on(revision_names::run(&stage, line))
    })
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
            cases.push(serde_json::from_str(line).with_context(place)?);
        }
    }
    Ok(cases)
}

/// Runs cases on all processors, each with a separate server. `after_each` runs after
/// each case.
///
/// # Errors
///
/// No server can be started.
pub fn run_cases(cases: &[Case], after_each: &(dyn Fn() + Sync)) -> anyhow::Result<Report> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, Report)>> = Mutex::default();
    let work = || -> anyhow::Result<()> {
        let runtime = paused_runtime()?;
        let mut stage = runtime.block_on(Stage::start())?;
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(case) = cases.get(index)
        {
            let report = runtime.block_on(judge(&mut stage, case));
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push((index, report));
            after_each();
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            let ended = worker.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(index, _)| *index);
    let mut report = Report::default();
    for (_, one) in found {
        report.append(one);
    }
    Ok(report)
}

fn paused_runtime() -> anyhow::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build();
    runtime.context("start a runtime")
}

async fn judge(stage: &mut Stage, case: &Case) -> Report {
    match stage.replay(case).await {
        Ok(difference) => difference::report(case, difference),
        Err(error) => Report::from_iter([Verdict::broken(case.title(), &error)]),
    }
}
