//! Packages and dependencies, as reported by Cargo.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::Context as _;
use serde::Deserialize;

/// The part of `cargo metadata` that the checks use.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Metadata {
    /// Every package of the graph, including the workspace's.
    pub packages: Vec<Package>,
    /// Ids of the workspace's packages.
    pub workspace_members: Vec<String>,
    /// The resolved graph.
    pub resolve: Resolve,
}

/// One package.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Package {
    /// Cargo's opaque id.
    pub id: String,
    /// Name on the registry or in the workspace.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Source; `None` for the workspace's packages.
    #[serde(default)]
    pub source: Option<String>,
    /// Declared SPDX expression.
    #[serde(default)]
    pub license: Option<String>,
    /// Registries to which it may be published: `None` for any, empty for none.
    #[serde(default)]
    pub publish: Option<Vec<String>>,
    /// One line about it.
    #[serde(default)]
    pub description: Option<String>,
    /// Path of its page.
    #[serde(default)]
    pub readme: Option<String>,
    /// Oldest compiler that builds it.
    #[serde(default)]
    pub rust_version: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// Its categories on the registry.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Path of its manifest.
    #[serde(default)]
    pub manifest_path: String,
    /// Declared dependencies.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// Libraries, binaries, tests, examples.
    #[serde(default)]
    pub targets: Vec<Target>,
    /// Declared features with the features that each enables.
    #[serde(default)]
    pub features: BTreeMap<String, Vec<String>>,
}

impl Package {
    /// Path of the package's folder from the repository's root, `crates/history`.
    pub fn folder(&self, root: &Path) -> String {
        Path::new(&self.manifest_path)
            .parent()
            .and_then(|folder| folder.strip_prefix(root).ok())
            .map_or_else(String::new, |folder| {
                folder.to_string_lossy().replace('\\', "/")
            })
    }

    /// Returns true unless it stays in the repository.
    pub fn is_publishable(&self) -> bool {
        self.publish.as_ref().is_none_or(|to| !to.is_empty())
    }

    /// Returns true for a package with a library target.
    pub fn is_library(&self) -> bool {
        self.targets
            .iter()
            .any(|target| target.kind.iter().any(|kind| kind == "lib"))
    }
}

/// One declared dependency.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Dependency {
    /// The package's name.
    pub name: String,
    /// `None` for `[dependencies]`, else `dev` or `build`.
    #[serde(default)]
    pub kind: Option<String>,
    /// True if a feature turns it on.
    #[serde(default)]
    pub optional: bool,
    /// Requested features.
    #[serde(default)]
    pub features: Vec<String>,
}

impl Dependency {
    /// Returns true for a dev-dependency.
    pub fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

/// One compiled root: library, binary, test, example, benchmark, build script.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Target {
    /// `lib`, `bin`, `test`, `example`, `bench`, `custom-build`, …
    pub kind: Vec<String>,
    /// Path of its root file.
    pub src_path: String,
}

/// The resolved graph.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Resolve {
    /// One node per package.
    pub nodes: Vec<Node>,
}

/// One resolved package.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Node {
    /// The package's id.
    pub id: String,
    /// Features enabled by any member of the workspace.
    #[serde(default)]
    pub features: Vec<String>,
}

impl Metadata {
    /// Runs `cargo metadata` for the host platform, with the lock file unchanged.
    ///
    /// # Errors
    /// Cargo fails, or its output is malformed.
    pub fn collect(root: &Path) -> anyhow::Result<Self> {
        let host = host_triple(root)?;
        let arguments = [
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            host.as_str(),
        ];
        let output = cargo(root, &arguments)?;
        serde_json::from_str(&output).context("read the output of cargo metadata")
    }

    /// The workspace's packages, by name.
    pub fn members(&self) -> BTreeMap<&str, &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
            .map(|package| (package.name.as_str(), package))
            .collect()
    }
}

/// The normal dependency graph of one package as `name version features` lines, resolved only for
/// that package (`cargo metadata` adds the features enabled by other members).
///
/// # Errors
/// Cargo fails, for example because the package does not exist.
pub fn normal_graph(root: &Path, package: &str, features: &str) -> anyhow::Result<String> {
    let mut arguments = vec![
        "tree", "--locked", "-e", "normal", "--prefix", "none", "--format", "{p} {f}",
    ];
    arguments.extend(["-p", package, "--features", features]);
    cargo(root, &arguments)
}

fn host_triple(root: &Path) -> anyhow::Result<String> {
    let version = cargo(root, &["-vV"])?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("find the host platform in cargo -vV")
}

fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .with_context(|| format!("run cargo {}", arguments.join(" ")))?;
    anyhow::ensure!(
        output.status.success(),
        "cargo {} failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout).context("read cargo's output as UTF-8")
}
