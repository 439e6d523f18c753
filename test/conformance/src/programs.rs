//! The shipped programs. Cargo builds none of another package's programs for a runner or a test,
//! so they are built here.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

/// What cargo tells a program about the package that it belongs to. Build scripts that watch
/// these would run again for every other caller of cargo.
const OF_THIS_PACKAGE: [&str; 6] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_CRATE_NAME",
    "CARGO_BIN_",
    "CARGO_PRIMARY_PACKAGE",
    "NEXTEST",
];

/// What `make build` builds: one selection, so that whoever builds them shares what is compiled.
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

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The control plane.
    pub control_plane: PathBuf,
    /// The controller.
    pub controller: PathBuf,
    /// The program behind `make run`.
    pub run: PathBuf,
}

/// Builds the programs with the profile and in the target folder of the program that runs; any
/// number of callers may do so at once, as cargo lets one build and the others wait. Without the
/// sources they are looked for beside the program that runs.
///
/// # Errors
///
/// A program can't be built, or isn't there.
pub fn build() -> anyhow::Result<Programs> {
    let folder = folder()?;
    let root = root();
    if root.join("Cargo.toml").is_file() {
        build_in(&root, &folder)?;
    }
    let program = |name| {
        let path = folder.join(name);
        ensure!(path.is_file(), "there is no {}", path.display());
        Ok(path)
    };
    Ok(Programs {
        control_plane: program("kube-test-control-plane")?,
        controller: program("statefulset-controller-manager")?,
        run: program("run")?,
    })
}

/// Where the program that runs is, as `target/PROFILE`.
fn folder() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe().context("find the program that runs")?;
    let folder = path.parent().context("the program is in no folder")?;
    // Tests are in target/PROFILE/deps.
    let folder = match folder.file_name() {
        Some(name) if name == "deps" => folder.parent().context("deps is in no folder")?,
        _ => folder,
    };
    Ok(folder.to_owned())
}

fn build_in(root: &Path, folder: &Path) -> anyhow::Result<()> {
    let (Some(target), Some(profile)) = (folder.parent(), folder.file_name()) else {
        bail!("{} is no target folder of cargo", folder.display());
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

/// The repository's root.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}
