//! Selection of the kubectl program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

/// Program name of the version that recorded the sessions.
const RECORDED_WITH: &str = "kubectl.1.32";

/// Oldest minor version that prints like the recorded one.
const MINOR_MIN: u32 = 30;

/// Returns the given kubectl, else `$KUBECTL`, else `kubectl.1.32`, else a `kubectl` that is new
/// enough. A bare program name is searched in `$PATH`, and next to the `kubectl` found there.
///
/// # Errors
///
/// There is no kubectl, or it is too old.
pub fn find(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let variable = std::env::var_os("KUBECTL").filter(|value| !value.is_empty());
    if let Some(path) = given.or(variable.as_deref().map(Path::new)) {
        return on_path(path.as_os_str())
            .with_context(|| format!("no kubectl at {}", path.display()));
    }
    let kubectl = on_path(OsStr::new("kubectl"));
    let beside = |kubectl: &PathBuf| {
        let path = kubectl.canonicalize().ok()?.with_file_name(RECORDED_WITH);
        path.is_file().then_some(path)
    };
    if let Some(path) = on_path(OsStr::new(RECORDED_WITH)).or(kubectl.as_ref().and_then(beside)) {
        return Ok(path);
    }
    let Some(kubectl) = kubectl else {
        bail!("no kubectl found: install 1.{MINOR_MIN} or later, or name one by $KUBECTL");
    };
    let minor = minor_version(&kubectl)
        .with_context(|| format!("ask {} for its version", kubectl.display()))?;
    ensure!(
        minor >= MINOR_MIN,
        "{} is 1.{minor}: install 1.{MINOR_MIN} or later, or name one by $KUBECTL",
        kubectl.display()
    );
    Ok(kubectl)
}

/// Searches a program like a shell.
fn on_path(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

fn minor_version(kubectl: &Path) -> anyhow::Result<u32> {
    let output = Command::new(kubectl)
        .args(["version", "--client", "--output=json"])
        .output()?;
    let version: Value = serde_json::from_slice(&output.stdout)?;
    let version = version["clientVersion"]["gitVersion"]
        .as_str()
        .context("no client version in the output")?;
    let minor = version.split('.').nth(1).context("no minor version")?;
    Ok(minor.parse()?)
}
