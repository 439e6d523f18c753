//! Asks Cargo about the packages and their dependencies.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::Context as _;
use serde::Deserialize;

/// What `cargo metadata` says, cut to what the checks read.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Metadata {
    /// Every package of the graph, the workspace's own ones included.
    pub packages: Vec<Package>,
    /// Ids of the workspace's own packages.
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
    /// Where it comes from; none for the workspace's own packages.
    #[serde(default)]
    pub source: Option<String>,
    /// SPDX expression, where one is declared.
    #[serde(default)]
    pub license: Option<String>,
    /// Path of its manifest.
    #[serde(default)]
    pub manifest_path: String,
    /// What it declares to depend on.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// Libraries, binaries, tests, examples.
    #[serde(default)]
    pub targets: Vec<Target>,
    /// Declared features and what each switches on.
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

    /// Whether it has a library target.
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
    /// What the manifest calls it, where that is something else.
    #[serde(default)]
    pub rename: Option<String>,
    /// `None` for `[dependencies]`, else `dev` or `build`.
    #[serde(default)]
    pub kind: Option<String>,
    /// Features asked for.
    #[serde(default)]
    pub features: Vec<String>,
}

impl Dependency {
    /// Whether it stands under `[dev-dependencies]`.
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
    /// Features switched on by anybody in the workspace.
    #[serde(default)]
    pub features: Vec<String>,
}

impl Metadata {
    /// Runs `cargo metadata` for the machine's own platform, with the lock file as it is.
    ///
    /// # Errors
    /// Cargo fails or answers something unreadable.
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

    /// The workspace's own packages, by name.
    pub fn members(&self) -> BTreeMap<&str, &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
            .map(|package| (package.name.as_str(), package))
            .collect()
    }
}

/// The normal dependency graph of one package as `name version features` lines, resolved for it
/// alone (`cargo metadata` mixes in what other members switch on).
///
/// # Errors
/// Cargo fails, for instance because there is no such package.
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
    String::from_utf8(output.stdout).context("cargo wrote something that is not UTF-8")
}
