//! Test of the Python client against the control plane.
//!
//! It needs Python with the package `kubernetes`, so it is built only with the feature `python`:
//! `make test-e2e`.

use std::env::var;
use std::process::Command;

use crate::harness::{Process, programs, root};

/// Number of changes that the control plane keeps: low, so that the client soon requests older
/// ones.
const LOG_WINDOW: &str = "50";

#[test]
fn python_client_passes_every_step() {
    let python = var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let imports = Command::new(&python)
        .args(["-c", "import kubernetes"])
        .output();
    assert!(
        imports.is_ok_and(|output| output.status.success()),
        "{python} is missing or has no package kubernetes: install it with pip, or name another \
         Python in PYTHON"
    );
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut command = Command::new(programs().control_plane);
    command
        .args(["--actors", "", "--log-window", LOG_WINDOW])
        .arg("--kubeconfig-out")
        .arg(&kubeconfig);
    let mut plane = Process::start("control plane", &mut command);
    plane.said("ready https://127.0.0.1:");
    let output = Command::new(&python)
        .arg(root().join("test/e2e/python/client.py"))
        .arg(&kubeconfig)
        .arg(LOG_WINDOW)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(said.ends_with("every step passed\n"), "{said}\n{errors}");
}
