//! The Helm chart: the package that Helm installs, and the same package as an OCI artefact.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::archive::{Entry, read_folder, tar_gz};
use crate::layout::{Layout, MANIFEST};
use crate::release::Release;

/// Media type of a chart's metadata.
pub const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// Media type of a chart's package.
pub const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Files that Helm reads first; the others follow by path.
const FIRST: [&str; 3] = ["Chart.yaml", "values.yaml", "values.schema.json"];

/// A packaged chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What `Chart.yaml` says.
    pub metadata: Value,
    /// The package, as `helm package` names it: `NAME-VERSION.tgz`.
    pub package: Vec<u8>,
}

impl Chart {
    /// Packages the chart of a folder. Its version must be the release's.
    ///
    /// `images` is the registry and path of the published images; without it the chart's default
    /// stays.
    pub fn package(release: &Release, folder: &Path, images: Option<&str>) -> anyhow::Result<Self> {
        let mut files = read_folder(folder)?;
        let place = |entry: &Entry| FIRST.iter().position(|first| *first == entry.path);
        files.sort_by_key(|entry| place(entry).unwrap_or(FIRST.len()));
        let read = |name: &str| {
            let file = files.iter().find(|entry| entry.path == name);
            file.with_context(|| format!("{} has no {name}", folder.display()))
        };
        let text = String::from_utf8_lossy(&read("Chart.yaml")?.bytes).into_owned();
        let metadata: Value = serde_saphyr::from_str(&text).context("read Chart.yaml")?;
        for member in ["version", "appVersion"] {
            ensure!(
                metadata[member] == *release.version,
                "Chart.yaml has the {member} {}, not {}: change it",
                metadata[member],
                release.version
            );
        }
        if let Some(images) = images {
            name_image(&mut files, &metadata, images)?;
        }
        let name = metadata["name"]
            .as_str()
            .context("Chart.yaml has no name")?;
        let files: Vec<_> = files.into_iter().map(|entry| entry.below(name)).collect();
        let package = tar_gz(&files, release.seconds)?;
        Ok(Self { metadata, package })
    }

    /// The OCI layout that registries take: `helm pull oci://…` reads it.
    pub fn layout(&self, release: &Release) -> anyhow::Result<Vec<u8>> {
        let mut layout = Layout::default();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": layout.add_json(CONFIG, &self.metadata),
            "layers": [layout.add(CONTENT, self.package.clone())],
            "annotations": {
                "org.opencontainers.image.created": release.time()?,
                "org.opencontainers.image.description": self.metadata["description"],
                "org.opencontainers.image.revision": release.commit,
                "org.opencontainers.image.source": release.source,
                "org.opencontainers.image.title": self.metadata["name"],
                "org.opencontainers.image.version": release.version,
            },
        });
        let descriptor = layout.add_json(MANIFEST, &manifest);
        layout.archive(descriptor, &release.version, release.seconds)
    }
}

/// Puts the published image into the default values.
fn name_image(files: &mut [Entry], metadata: &Value, images: &str) -> anyhow::Result<()> {
    let values = files.iter_mut().find(|entry| entry.path == "values.yaml");
    let values = values.context("the chart has no values.yaml")?;
    let text = String::from_utf8_lossy(&values.bytes).into_owned();
    let name = metadata["name"]
        .as_str()
        .context("Chart.yaml has no name")?;
    let line = format!("  repository: {name}\n");
    ensure!(
        text.matches(&line).count() == 1,
        "values.yaml doesn't name the image as `{}`",
        line.trim()
    );
    let published = format!("  repository: {images}/{name}\n");
    values.bytes = text.replace(&line, &published).into_bytes();
    Ok(())
}
