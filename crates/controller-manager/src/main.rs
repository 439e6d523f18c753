//! The StatefulSet controller as a standalone program that replaces the one built into
//! kube-controller-manager.
//!
//! Flags have the names, defaults and spellings of kube-controller-manager: `--flag=value` and
//! `--flag value`, `--switch` and `--switch=false`, `_` for `-`. `--help` lists them.
//!
//! # Exit codes
//!
//! 0 after SIGINT or SIGTERM, once the syncs in progress have finished; 130 after a second signal.
//! 1 on every failure, including bad flags and a lost lease, with one line `Error: …` on stderr.

// Server data must never cause a panic.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable
    )
)]

mod access;
mod clients;
mod configz;
mod controllers;
mod flags;
mod leader_election;
mod logging;
mod metrics;
mod options;
mod program;
mod run;
#[cfg(test)]
mod scripted;
mod secure_port;
mod serving;
mod signals;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use kube_apimachinery::error_line::error_line;
use rand::TryRng as _;
use rand::rngs::SysRng;
use statefulset_client::config::ProxyConfig;

use crate::flags::Invocation;
use crate::leader_election::ElectionSeeds;
use crate::options::Options;
use crate::program::PROGRAM;
use crate::run::Seeds;
use crate::secure_port::DebugState;

/// The runtime's own variable for its number of threads. One is the default: further threads cost
/// memory and wake-ups, and a sync waits more than it computes. The runtime adds a thread for
/// each large sync in any case.
const THREADS_VARIABLE: &str = "TOKIO_WORKER_THREADS";
/// Pause of a thread without work before it waits for more. Events and responses of this time share
/// one wake-up, which saves a fifth of the CPU time under load; later ones are not delayed.
const PAUSE_BEFORE_WAITING: Duration = Duration::from_millis(2);
/// Time limit for remaining tasks at exit: tasks end at their next await, but a blocking file read
/// may take longer.
const TASKS_END_MAX: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    match start(std::env::args_os().skip(1)) {
        Ok(code) => code,
        Err(error) => {
            // With stderr closed, the error is lost.
            let _ = writeln!(std::io::stderr(), "Error: {}", error_line(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Vec<OsString> = arguments.collect();
    let flags = match flags::parse(arguments.iter())? {
        Invocation::Help => return print(&flags::help()),
        Invocation::Version => return print(&version()),
        Invocation::Generate(text) => return print(flags::generate(text)?.trim_end()),
        Invocation::Run(flags) => flags,
    };
    let mut options = Options::resolve(*flags)?;
    options.source.proxy = ProxyConfig::from_environment(|name| std::env::var(name).ok());
    let texts: Vec<String> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let shown = DebugState {
        flags: flags::shown(&texts)?,
        set_verbosity: logging::start(options.logging).context("start logging")?,
    };
    let seeds = Seeds {
        controller: random()?,
        election: ElectionSeeds {
            waits: random()?,
            events: random()?,
        },
        reviews: random()?,
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if std::env::var_os(THREADS_VARIABLE).is_none() {
        runtime.worker_threads(1);
    }
    runtime.on_thread_park(|| std::thread::sleep(PAUSE_BEFORE_WAITING));
    let runtime = runtime.enable_all().build().context("start the runtime")?;
    let result = runtime.block_on(signals::supervise(|stop| {
        run::run(options, shown, seeds, stop)
    }));
    // Nothing is logged after the line that explains the exit.
    runtime.shutdown_timeout(TASKS_END_MAX);
    result
}

fn print(text: &str) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout(), "{text}").context("write to stdout")?;
    Ok(ExitCode::SUCCESS)
}

fn version() -> String {
    format!(
        "{PROGRAM} {} (after Kubernetes v1.36.2)",
        env!("CARGO_PKG_VERSION")
    )
}

fn random() -> anyhow::Result<u64> {
    SysRng
        .try_next_u64()
        .context("read the system's random source")
}
