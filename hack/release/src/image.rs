//! Images with one static program and nothing else: no base image, no shell, no user but a number.

use serde_json::{Value, json};

use crate::archive::{Entry, gzip, tar};
use crate::digest::Digest;
use crate::layout::{INDEX, Layout, MANIFEST};
use crate::platform::{ImageOf, Platform, Program};
use crate::release::Release;

/// User and group of the process: the one that the shipped Deployment demands.
pub const USER: &str = "65532:65532";

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The layout's archive and the digest of its index, by which a Deployment can pin the image.
#[derive(Clone, Debug)]
pub struct Image {
    /// The OCI layout.
    pub archive: Vec<u8>,
    /// Digest of the index of all platforms.
    pub index: Digest,
}

/// An image of a program for several platforms; each comes with the files of its root folder.
pub fn image(
    release: &Release,
    program: &Program,
    of: ImageOf,
    platforms: &[(Platform, Vec<Entry>)],
) -> anyhow::Result<Image> {
    let mut layout = Layout::default();
    let mut manifests = Vec::new();
    for (platform, files) in platforms {
        let mut descriptor = add_platform(&mut layout, release, program, of, files, platform)?;
        descriptor["platform"] = json!({"os": platform.os, "architecture": platform.arch});
        manifests.push(descriptor);
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": manifests,
        "annotations": labels(release, program)?,
    });
    let digest = Digest::of(index.to_string().as_bytes());
    let descriptor = layout.add_json(INDEX, &index);
    Ok(Image {
        archive: layout.archive(descriptor, &release.version, release.seconds)?,
        index: digest,
    })
}

fn add_platform(
    layout: &mut Layout,
    release: &Release,
    program: &Program,
    of: ImageOf,
    files: &[Entry],
    platform: &Platform,
) -> anyhow::Result<Value> {
    let layer = tar(files, release.seconds)?;
    let uncompressed = Digest::of(&layer);
    let created = release.time()?;
    let mut process = json!({
        "User": USER,
        "Entrypoint": [format!("/{}", program.name)],
        "WorkingDir": "/",
        "Labels": labels(release, program)?,
    });
    if let Some(port) = of.port {
        process["ExposedPorts"] = json!({format!("{port}/tcp"): {}});
    }
    let config = json!({
        "created": created,
        "os": platform.os,
        "architecture": platform.arch,
        "config": process,
        "rootfs": {"type": "layers", "diff_ids": [uncompressed.prefixed()]},
        "history": [{"created": created, "created_by": "make release"}],
    });
    let layer = layout.add(LAYER, gzip(&layer)?);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": layout.add_json(CONFIG, &config),
        "layers": [layer],
        "annotations": labels(release, program)?,
    });
    Ok(layout.add_json(MANIFEST, &manifest))
}

/// The predefined annotations of the OCI specification.
fn labels(release: &Release, program: &Program) -> anyhow::Result<Value> {
    let name = |key: &str| format!("org.opencontainers.image.{key}");
    Ok(json!({
        name("created"): release.time()?,
        name("description"): program.title,
        name("licenses"): "Apache-2.0",
        name("revision"): release.commit,
        name("source"): release.source,
        name("title"): program.name,
        name("version"): release.version,
    }))
}
