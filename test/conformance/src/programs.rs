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

/// The control plane's package, with what makes it a program.
pub const CONTROL_PLANE: Program = Program {
    name: "kube-test-control-plane",
    arguments: &[
        "-p",
        "kube-test-control-plane",
        "--features",
        "kube-test-control-plane/cli",
    ],
};

/// The controller's package.
pub const CONTROLLER: Program = Program {
    name: "statefulset-controller-manager",
    arguments: &["-p", "statefulset-controller-manager"],
};

/// The package behind `make run`.
pub const RUN: Program = Program {
    name: "run",
    arguments: &["-p", "run"],
};

/// A program of this repository.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The file's name.
    pub name: &'static str,
    /// What `cargo build` needs to be told.
    arguments: &'static [&'static str],
}

/// Builds a program with the profile and in the target folder of the program that runs; any number
/// of callers may do so at once, as cargo lets one build and the others wait. Without the sources
/// it is looked for beside the program that runs.
///
/// # Errors
///
/// The program can't be built, or isn't there.
pub fn build(program: Program) -> anyhow::Result<PathBuf> {
    let folder = folder()?;
    let root = root();
    if root.join("Cargo.toml").is_file() {
        build_in(&root, &folder, program)?;
    }
    let path = folder.join(program.name);
    ensure!(path.is_file(), "there is no {}", path.display());
    Ok(path)
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

fn build_in(root: &Path, folder: &Path, program: Program) -> anyhow::Result<()> {
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
        .args(program.arguments);
    let output = cargo
        .output()
        .with_context(|| format!("run {}", env!("CARGO")))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "building {} failed:\n{errors}",
        program.name
    );
    Ok(())
}

/// The repository's root.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}
