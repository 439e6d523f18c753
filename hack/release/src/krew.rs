//! The manifest of the kubectl plugin for krew's index.

use serde_json::{Value, json};

use crate::digest::Digest;
use crate::platform::Platform;
use crate::release::Release;

/// The plugin's name: `kubectl sts`.
pub const PLUGIN: &str = "sts";

/// An archive of a program for a platform.
#[derive(Clone, Debug)]
pub struct Download {
    /// The platform of the program.
    pub platform: Platform,
    /// Name of the archive.
    pub file: String,
    /// Name of the only folder in the archive.
    pub folder: String,
    /// Digest of the archive.
    pub digest: Digest,
}

/// The manifest, as JSON, which is YAML too; `downloads` is the address of the archives' folder.
pub fn manifest(release: &Release, archives: &[Download], downloads: &str) -> Value {
    let platforms: Vec<Value> = archives
        .iter()
        .map(|archive| platform(archive, downloads))
        .collect();
    json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": PLUGIN},
        "spec": {
            "version": format!("v{}", release.version),
            "homepage": release.source,
            "shortDescription": "Explain stuck StatefulSets",
            "description": "Tells why a StatefulSet is stuck and which command resolves it, previews \
                changes to a set, shows the differences of its revisions, and recreates a set in \
                place while its pods run.\n",
            "platforms": platforms,
        },
    })
}

fn platform(archive: &Download, downloads: &str) -> Value {
    let program = archive.platform.file_name("kubectl-sts");
    json!({
        "selector": {"matchLabels": {"os": archive.platform.os, "arch": archive.platform.arch}},
        "uri": format!("{downloads}/{}", archive.file),
        "sha256": archive.digest.to_string(),
        "files": [
            {"from": format!("{}/{program}", archive.folder), "to": "."},
            {"from": format!("{}/LICENSE", archive.folder), "to": "."},
        ],
        "bin": program,
    })
}
