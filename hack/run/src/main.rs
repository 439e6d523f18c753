//! The program behind `make run`: a control plane, the controller, a manifest, and a live view of
//! the pods.
//!
//! The two shipped binaries are child processes, so that the user can kill and restart the
//! controller while the view continues.

mod apply;
mod children;
mod culprit;
mod kubeconfig;
mod manifest;
mod options;
mod session;
mod terminal;
mod view;
mod waiting;
mod watch;
mod world;

use std::{io::Write as _, process::ExitCode};

use clap::Parser as _;

use crate::options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&anyhow::Error::new(error).context("start the runtime")),
    };
    match runtime.block_on(session::run(&options)) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

/// Prints an error in one line.
fn fail(error: &anyhow::Error) -> ExitCode {
    let message = format!("{error:#}").replace('\n', " ");
    // A closed standard error leaves no way to report this.
    let _ = writeln!(std::io::stderr(), "run: {message}");
    ExitCode::FAILURE
}
