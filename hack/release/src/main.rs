//! The packer behind `make release`: `hack/release.sh` builds the programs and calls it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Parser};
use release::pack::{Inputs, pack};
use release::release::Release;
use release::seal::{Build, seal};

/// Writes the artefacts of a release.
#[derive(Debug, Parser)]
enum Command {
    /// Writes archives, images, the chart and manifests into an empty folder
    Pack {
        #[command(flatten)]
        about: About,
        /// Folder of the programs, by target
        #[arg(long)]
        programs: PathBuf,
        /// Folder of the programs' bills of materials, by target
        #[arg(long)]
        sboms: PathBuf,
        /// Folder of man pages and completions, by program
        #[arg(long)]
        texts: PathBuf,
        /// Address of the folder from which the files will be downloaded
        #[arg(long)]
        downloads: String,
        /// Registry and path of the published images, for the chart
        #[arg(long)]
        images: Option<String>,
        /// Folder of the artefacts
        out: PathBuf,
    },
    /// Writes provenance, checksums and MANIFEST for all files of a folder
    Seal {
        #[command(flatten)]
        about: About,
        /// Name and version of the compiler
        #[arg(long)]
        compiler: String,
        /// File with a line `PROGRAM TARGET REASON` for what wasn't built
        #[arg(long)]
        not_built: PathBuf,
        /// Folder of the artefacts
        out: PathBuf,
    },
}

/// What is released.
#[derive(Debug, Args)]
struct About {
    /// Version, without a v
    #[arg(long)]
    version: String,
    /// Hash of the commit
    #[arg(long)]
    commit: String,
    /// Address of the repository
    #[arg(long)]
    source: String,
    /// Time of the commit, in seconds since 1970
    #[arg(long, env = "SOURCE_DATE_EPOCH")]
    seconds: u64,
}

impl From<About> for Release {
    fn from(about: About) -> Self {
        Self {
            version: about.version,
            commit: about.commit,
            seconds: about.seconds,
            source: about.source.trim_end_matches('/').to_owned(),
        }
    }
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = format!("{error:#}").replace('\n', " ");
            // A closed standard error leaves no way to report this.
            let _ = writeln!(std::io::stderr(), "release: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Pack {
            about,
            programs,
            sboms,
            texts,
            downloads,
            images,
            out,
        } => {
            let inputs = Inputs {
                root: PathBuf::from("."),
                programs,
                bills: sboms,
                texts,
                downloads: downloads.trim_end_matches('/').to_owned(),
                images,
            };
            pack(&about.into(), &inputs, &out)
        }
        Command::Seal {
            about,
            compiler,
            not_built,
            out,
        } => {
            let not_built = std::fs::read_to_string(&not_built)
                .with_context(|| format!("read {}", not_built.display()))?;
            let build = Build {
                compiler: &compiler,
                lock_file: Path::new("Cargo.lock"),
                not_built: &not_built,
            };
            seal(&about.into(), &build, &out)
        }
    }
}
