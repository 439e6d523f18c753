//! `conformance revisions|sync|settled FILE...`: exit code 0 if all cases pass, 1 if some fail, 2
//! if a file can't be read.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use conformance::report::Report;
use conformance::{revisions, settled, sync};

/// Replays recorded behaviour of the reference.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    form: Form,
}

/// The forms of recorded files.
#[derive(Subcommand)]
enum Form {
    /// Revision data, names, hashes, labels, pods and claims of fuzzed sets.
    Revisions {
        /// Files with one case a line, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// One sync on a frozen cluster.
    Sync {
        /// Files with one case a line, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Clusters that the reference left settled.
    Settled {
        /// Files with one case a line, plain or gzip.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    let run = match Arguments::parse().form {
        Form::Revisions { files } => Report::of(&files, revisions::run),
        Form::Sync { files } => Report::of(&files, sync::run),
        Form::Settled { files } => Report::of(&files, settled::run),
    };
    match run {
        Ok(report) => report.print(),
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the runner's answer")]
            {
                eprintln!("conformance: {error:#}");
            }
            ExitCode::from(2)
        }
    }
}
