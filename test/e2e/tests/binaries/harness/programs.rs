//! The binaries under test. Cargo builds none of another package's binaries for a test, so they
//! are built here.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What cargo tells a test about the package that the test belongs to. Build scripts that watch
/// these would run again for every other caller of cargo.
const OF_THE_TEST: [&str; 6] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_CRATE_NAME",
    "CARGO_BIN_",
    "CARGO_PRIMARY_PACKAGE",
    "NEXTEST",
];

/// Where the binaries are.
pub(crate) struct Programs {
    pub(crate) control_plane: PathBuf,
    pub(crate) controller: PathBuf,
    pub(crate) run: PathBuf,
}

impl Programs {
    /// Builds them with the profile and in the target folder of the test itself. Any number of
    /// tests may ask at once: cargo lets one build and the others wait for it.
    pub(crate) fn build() -> Self {
        let test = std::env::current_exe().unwrap();
        // target/PROFILE/deps/TEST
        let folder = test.ancestors().nth(2).unwrap();
        let profile = match folder.file_name().unwrap().to_str().unwrap() {
            "debug" => "dev",
            other => other,
        };
        let mut cargo = Command::new(env!("CARGO"));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if OF_THE_TEST.iter().any(|prefix| name.starts_with(prefix)) {
                cargo.env_remove(&*name);
            }
        }
        let output = cargo
            .current_dir(root())
            .args(["build", "--locked", "--quiet", "--profile", profile])
            .arg("--target-dir")
            .arg(folder.parent().unwrap())
            .args(["-p", "run", "-p", "statefulset-controller-manager"])
            .args(["-p", "kube-test-control-plane"])
            .args(["--features", "kube-test-control-plane/cli"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cargo build failed:\n{errors}");
        let program = |name| {
            let path = folder.join(name);
            assert!(path.is_file(), "cargo built no {}", path.display());
            path
        };
        Self {
            control_plane: program("kube-test-control-plane"),
            controller: program("statefulset-controller-manager"),
            run: program("run"),
        }
    }
}

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap()
}
