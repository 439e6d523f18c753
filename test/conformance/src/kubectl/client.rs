//! Which kubectl is used.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

/// The version with which sessions are recorded, as a program's name.
const RECORDED_WITH: &str = "kubectl.1.32";

/// The oldest minor version that prints as the recorded one does.
const MINOR_MIN: u32 = 30;

/// The given kubectl, else `$KUBECTL`, else `kubectl.1.32`, else a `kubectl` that is new enough.
/// A program without a folder is looked for in the folders of `$PATH`, and beside the `kubectl`
/// that is found there.
///
/// # Errors
///
/// There is none, or the only one is too old.
pub fn find(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let variable = std::env::var_os("KUBECTL").filter(|value| !value.is_empty());
    if let Some(path) = given.or(variable.as_deref().map(Path::new)) {
        return on_path(path.as_os_str())
            .with_context(|| format!("there is no kubectl at {}", path.display()));
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
        bail!("there is no kubectl: install 1.{MINOR_MIN} or later, or name one by $KUBECTL");
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

/// A program as a shell finds it.
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
        .context("it doesn't tell")?;
    let minor = version.split('.').nth(1).context("it has no minor part")?;
    Ok(minor.parse()?)
}
