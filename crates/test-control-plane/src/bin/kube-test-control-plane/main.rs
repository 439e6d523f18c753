//! The program: a control plane on a loopback port that runs until a signal.

mod args;
mod audit_file;
mod generate;
mod inputs;
mod run;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use args::Args;
use clap::{CommandFactory as _, Parser};
use kube_apimachinery::error_line::error_line;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(err) if !err.use_stderr() => {
            // Help and version; the reader may close the output early.
            let _ = err.print();
            return ExitCode::SUCCESS;
        }
        Err(err) => return fail(&first_line(&err.to_string())),
    };
    if let Some(text) = args.generate {
        return match generate::print(text, Args::command()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(err) => fail(&error_line(err.as_ref())),
        };
    }
    let level = match args.verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(lines)
        .with(
            Targets::new()
                .with_target("kube_test_control_plane", level)
                .with_target("statefulset", level),
        )
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(err) => return fail(&format!("starting the runtime: {err}")),
    };
    match runtime.block_on(run::run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => fail(&error_line(err.as_ref())),
    }
}

/// Returns the error message of invalid flags, without the usage hint.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[expect(
    clippy::print_stderr,
    reason = "the one line with the reason of the failure"
)]
fn fail(reason: &str) -> ExitCode {
    let line: Vec<&str> = reason.lines().map(str::trim).collect();
    eprintln!("error: {}", line.join(" "));
    ExitCode::FAILURE
}
