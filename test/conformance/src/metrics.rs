//! Comparison of upstream's `/metrics` scrapes with the program's, except for values.

mod compare;
pub mod exposition;
mod program;

use std::path::PathBuf;

use anyhow::{Context as _, ensure};

use crate::files;
use crate::remote::Remote;
use crate::report::{Report, Verdict};

/// Scrapes a running program, or a new run of the shipped one.
///
/// # Errors
///
/// The program can't be reached or started.
pub fn scrape(program: Option<&Remote>) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start a runtime")?;
    runtime.block_on(async {
        match program {
            Some(remote) => remote.text("/metrics").await,
            None => program::scrape().await,
        }
    })
}

/// Compares every file with a scrape of the program; each family is a case.
///
/// # Errors
///
/// A file or the scrape can't be read.
pub fn run(files: &[PathBuf], scrape: &str) -> anyhow::Result<Report> {
    let own = exposition::parse(scrape).context("read the program's scrape")?;
    let mut report = Report::default();
    for file in files {
        let reference = exposition::parse(&files::text(file)?)
            .with_context(|| format!("read {}", file.display()))?;
        ensure!(
            !reference.is_empty(),
            "{} has no metric family",
            file.display()
        );
        let verdicts: Vec<Verdict> = compare::compare(&reference, &own);
        report.append(verdicts.into_iter().collect());
    }
    Ok(report)
}
