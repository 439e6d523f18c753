//! The program behind `make run`: a control plane, the controller, a manifest, and a view of the
//! pods as they come up.
//!
//! It starts the two shipped binaries as child processes, so that the controller can be killed and
//! started again by hand while the view goes on.

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

/// Says in one line what went wrong.
fn fail(error: &anyhow::Error) -> ExitCode {
    let message = format!("{error:#}").replace('\n', " ");
    // Nobody is left to tell if standard error is closed.
    let _ = writeln!(std::io::stderr(), "run: {message}");
    ExitCode::FAILURE
}
