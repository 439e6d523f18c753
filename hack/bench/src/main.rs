//! Measures what the controller promises to be cheap at, each figure against a baseline of the
//! same run, and fails where a promise is broken.
//!
//! Only instruction counts and memory have bounds: they are the same on every machine. Times are
//! printed and never judged.

mod cluster;
mod instructions;
mod memory;
mod report;
mod throughput;
mod timing;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::bail;

use crate::report::Report;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        [] => measure_all(),
        // What the program runs itself with, in processes of their own.
        [instructions::CHILD, own, others] => instructions::child(own, others),
        [memory::CHILD, kind] => memory::child(kind),
        _ => Err(anyhow::anyhow!("takes no arguments")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = format!("{error:#}").replace('\n', " ");
            // Nobody is left to tell if standard error is closed.
            let _ = writeln!(std::io::stderr(), "bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all() -> anyhow::Result<()> {
    instructions::require_valgrind()?;
    let mut report = Report::default();
    instructions::measure(&mut report)?;
    memory::measure(&mut report)?;
    throughput::measure(&mut report)?;
    writeln!(std::io::stdout(), "{report}")?;
    let broken = report.broken();
    if !broken.is_empty() {
        bail!("{}", broken.join("; "));
    }
    Ok(())
}
