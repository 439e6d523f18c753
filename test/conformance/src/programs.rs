//! Builds of the shipped programs; cargo doesn't build another package's programs for a runner or a
//! test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command as ProgramCommand};
use tokio::time::timeout;

/// Environment variables that cargo sets for the current package. Build scripts that depend on them
/// would rerun for every other caller of cargo.
const OF_THIS_PACKAGE: [&str; 6] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_CRATE_NAME",
    "CARGO_BIN_",
    "CARGO_PRIMARY_PACKAGE",
    "NEXTEST",
];

/// Packages of `make build`: one selection, so that all callers share the compiled artifacts.
const PACKAGES: [&str; 8] = [
    "-p",
    "run",
    "-p",
    "statefulset-controller-manager",
    "-p",
    "kube-test-control-plane",
    "--features",
    "kube-test-control-plane/cli",
];

/// Environment variable with the folder of programs that are already built, as `make test` sets it:
/// one selection of packages for tests and programs halves the build.
const BUILT: &str = "TEST_PROGRAMS";

/// Time limit for the control plane to become ready.
const START_MAX: Duration = Duration::from_secs(30);

/// Paths of the programs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The control plane.
    pub control_plane: PathBuf,
    /// The controller.
    pub controller: PathBuf,
    /// The program behind `make run`.
    pub run: PathBuf,
}

/// Builds the programs with the profile and target folder of the running program. Concurrent calls
/// are safe: cargo serializes builds. Without sources, the programs are expected next to the running
/// program; with the environment variable `TEST_PROGRAMS`, in the folder that it names.
///
/// # Errors
///
/// A program can't be built, or doesn't exist.
pub fn build() -> anyhow::Result<Programs> {
    let root = root();
    let folder = match std::env::var_os(BUILT) {
        Some(folder) => folder.into(),
        None => folder()?,
    };
    if std::env::var_os(BUILT).is_none() && root.join("Cargo.toml").is_file() {
        build_in(&root, &folder)?;
    }
    let program = |name| {
        let path = folder.join(name);
        ensure!(path.is_file(), "{} does not exist", path.display());
        Ok(path)
    };
    Ok(Programs {
        control_plane: program("kube-test-control-plane")?,
        controller: program("statefulset-controller-manager")?,
        run: program("run")?,
    })
}

/// Folder of the running program: `target/PROFILE`.
fn folder() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe().context("find the program that runs")?;
    let folder = path.parent().context("the program has no parent folder")?;
    // Tests are in target/PROFILE/deps.
    let folder = match folder.file_name() {
        Some(name) if name == "deps" => folder.parent().context("deps has no parent folder")?,
        _ => folder,
    };
    Ok(folder.to_owned())
}

fn build_in(root: &Path, folder: &Path) -> anyhow::Result<()> {
    let (Some(target), Some(profile)) = (folder.parent(), folder.file_name()) else {
        bail!("{} is not a target folder of cargo", folder.display());
    };
    let profile = match profile.to_string_lossy().into_owned() {
        name if name == "debug" => "dev".to_owned(),
        other => other,
    };
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let is_of_this_package = OF_THIS_PACKAGE
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix));
        if is_of_this_package {
            cargo.env_remove(&name);
        }
    }
    cargo
        .current_dir(root)
        .args(["build", "--locked", "--quiet", "--profile", &profile])
        .arg("--target-dir")
        .arg(target)
        .args(PACKAGES);
    let output = cargo
        .output()
        .with_context(|| format!("run {}", env!("CARGO")))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "building the programs failed:\n{errors}"
    );
    Ok(())
}

/// Root folder of the repository.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// Starts a program with stderr in a file; it is killed when the handle is dropped.
pub(crate) fn spawn(command: &mut ProgramCommand, log: &Path) -> anyhow::Result<Child> {
    let file = File::create(log).with_context(|| format!("create {}", log.display()))?;
    let child = command
        .stdin(Stdio::null())
        .stderr(file)
        .kill_on_drop(true)
        .spawn();
    child.with_context(|| {
        let program = Path::new(command.as_std().get_program());
        format!("run {}", program.display())
    })
}

/// Waits until the control plane prints its URL.
pub(crate) async fn ready(control_plane: &mut Child) -> anyhow::Result<String> {
    let stdout = control_plane.stdout.take().context("no output")?;
    let mut lines = BufReader::new(stdout).lines();
    let line = timeout(START_MAX, lines.next_line())
        .await
        .with_context(|| format!("no output within {} s", START_MAX.as_secs()))??
        .context("the process has ended")?;
    let url = line.strip_prefix("ready ");
    Ok(url
        .with_context(|| format!("unexpected output {line:?}"))?
        .to_owned())
}
