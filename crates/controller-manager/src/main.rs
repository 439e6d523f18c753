//! The StatefulSet controller as a program of its own, in place of the one built into
//! kube-controller-manager.
//!
//! Flags have the names, defaults and spellings of kube-controller-manager: `--flag=value` and
//! `--flag value`, `--switch` and `--switch=false`, `_` for `-`.
//!
//! | flag | default | meaning |
//! |---|---|---|
//! | `--kubeconfig` | | file with the API server and the credentials; without it and without `--master` the pod's service account |
//! | `--master` | | address of the API server; wins over the one in the file |
//! | `--leader-elect` | `true` | must be `false` until leader election is there |
//! | `--controllers` | `*` | which controllers run; this program has `statefulset-controller` only |
//! | `--concurrent-statefulset-syncs` | 5 | how many sets are synced at once |
//! | `--kube-api-qps`, `--kube-api-burst` | 20, 30 | requests a second on average and at once, of each of the two clients (informers; controller and events); a negative rate is no limit |
//! | `--min-resync-period` | `12h` | how often all cached objects are looked at again, stretched by a random factor of up to 2; `0s` is never |
//! | `--feature-gates` | | such as `MaxUnavailableStatefulSet=true`; also `AllAlpha`, `AllBeta` |
//! | `-v`, `--v` | 0 | how much is logged: 0 to 3 steps, 4 decisions, 5 and more everything |
//! | `--logging-format` | `text` | `text` or `json`, one line each, on stderr |
//! | `--version`, `-h`, `--help` | | |
//!
//! # Exit codes
//!
//! 0 after SIGINT or SIGTERM, once the syncs in progress are finished; 130 after a second one. 1 on
//! every failure, also of the flags, with one line `Error: …` on stderr.

mod error_line;
mod flags;
mod go_duration;
mod logging;
mod options;
mod preflight;
mod run;
mod signals;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use rand::TryRngCore as _;
use rand::rngs::OsRng;

use crate::flags::Invocation;
use crate::options::Options;
use crate::run::Seeds;

/// What the program is called.
const PROGRAM: &str = env!("CARGO_PKG_NAME");

fn main() -> ExitCode {
    match start(std::env::args_os().skip(1)) {
        Ok(code) => code,
        Err(error) => {
            // With stderr closed there is nobody left to tell.
            let _ = writeln!(
                std::io::stderr(),
                "Error: {}",
                error_line::error_line(&error)
            );
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let flags = match flags::parse(arguments)? {
        Invocation::Help => return print(&flags::help()),
        Invocation::Version => return print(&version()),
        Invocation::Run(flags) => flags,
    };
    let options = Options::resolve(flags)?;
    logging::start(options.logging).context("start logging")?;
    let seeds = Seeds {
        controller: random()?,
        events: random()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let result = runtime.block_on(signals::supervise(|stop| run::run(options, seeds, stop)));
    // What still runs after a second signal is left behind.
    runtime.shutdown_background();
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
    OsRng
        .try_next_u64()
        .context("read the system's random source")
}
