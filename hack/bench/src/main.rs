//! Benchmarks of the controller and the test control plane, each with a baseline from the same run.
//!
//! A broken bound fails the run. Only instruction counts and memory have bounds: they are the same
//! on every machine. Times are printed only.

mod cluster;
mod control_plane;
mod function_order;
mod instructions;
mod large_set;
mod load;
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
        ["instructions"] => print(&[instructions::compare]),
        ["record-instructions"] => instructions::record(),
        // Parts that need no valgrind.
        ["control-plane"] => print(&[control_plane::measure]),
        ["policies"] => print(&[control_plane::measure_policies]),
        ["large-set"] => print(&[large_set::measure]),
        ["memory"] => print(&[memory::measure]),
        // A whole cluster.
        [load::SUBCOMMAND, ..] => load::run(&arguments),
        // A step of building the program.
        [function_order::SUBCOMMAND, symbols, ref counts @ ..] => {
            function_order::print(symbols, counts)
        }
        // Child processes of this program.
        [instructions::CHILD, work] => instructions::child(work),
        [memory::CHILD, kind] => memory::child(kind),
        [control_plane::MEMORY_CHILD] => control_plane::memory_child(),
        [control_plane::START_CHILD] => control_plane::start_child(),
        [control_plane::IDLE] => control_plane::idle(),
        _ => Err(anyhow::anyhow!(
            "takes no argument, instructions, record-instructions, control-plane, policies, \
             large-set, memory, load or function-order SYMBOLS COUNTS..."
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = format!("{error:#}").replace('\n', " ");
            // A closed standard error leaves no way to report this.
            let _ = writeln!(std::io::stderr(), "bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all() -> anyhow::Result<()> {
    instructions::require_valgrind()?;
    let parts = [
        instructions::measure,
        memory::measure,
        throughput::measure,
        large_set::measure,
        control_plane::measure,
    ];
    print(&parts)
}

/// Measures the parts and prints the table.
fn print(parts: &[fn(&mut Report) -> anyhow::Result<()>]) -> anyhow::Result<()> {
    let mut report = Report::default();
    for measure in parts {
        measure(&mut report)?;
    }
    writeln!(std::io::stdout(), "{report}")?;
    let broken = report.broken();
    if !broken.is_empty() {
        bail!("{}", broken.join("; "));
    }
    Ok(())
}
