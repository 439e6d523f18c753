//! OCI layouts, read as a client of registries reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::archive::Entry;
use crate::digest::Digest;

/// A layout whose blobs are verified when they are read.
#[derive(Clone, Debug)]
pub struct Opened {
    files: BTreeMap<String, Entry>,
    read: BTreeSet<String>,
}

impl Opened {
    /// Opens the archive of a layout.
    pub fn of(archive: &[u8]) -> anyhow::Result<Self> {
        let opened = Self {
            files: untar(archive)?,
            read: BTreeSet::new(),
        };
        let version: Value = serde_json::from_slice(&opened.file("oci-layout")?.bytes)?;
        ensure!(
            version["imageLayoutVersion"] == "1.0.0",
            "the archive is no OCI layout 1.0.0"
        );
        Ok(opened)
    }

    fn file(&self, path: &str) -> anyhow::Result<&Entry> {
        let file = self.files.get(path);
        file.with_context(|| format!("the layout has no {path}"))
    }

    /// The only descriptor of the layout's index.
    pub fn entry(&self) -> anyhow::Result<Value> {
        let index: Value = serde_json::from_slice(&self.file("index.json")?.bytes)?;
        let manifests = index["manifests"].as_array().map_or(&[][..], Vec::as_slice);
        match manifests {
            [entry] => Ok(entry.clone()),
            others => anyhow::bail!("the layout's index has {} entries, not one", others.len()),
        }
    }

    /// The blob of a descriptor.
    pub fn blob(&mut self, descriptor: &Value) -> anyhow::Result<Vec<u8>> {
        let digest = descriptor["digest"].as_str();
        let digest = digest.context("a descriptor has no digest")?;
        let path = format!("blobs/{}", digest.replace(':', "/"));
        let bytes = self.file(&path)?.bytes.clone();
        ensure!(
            Digest::of(&bytes).prefixed() == digest && descriptor["size"] == bytes.len(),
            "{path} has another digest or size than its descriptor"
        );
        self.read.insert(path);
        Ok(bytes)
    }

    /// The JSON document of a descriptor.
    pub fn json(&mut self, descriptor: &Value) -> anyhow::Result<Value> {
        let document: Value = serde_json::from_slice(&self.blob(descriptor)?)?;
        let media_type = document.get("mediaType");
        ensure!(
            media_type.is_none_or(|own| *own == descriptor["mediaType"]),
            "a document has another media type than its descriptor"
        );
        Ok(document)
    }

    /// The blobs to which nothing refers that has been read.
    pub fn unread(&self) -> Vec<&str> {
        let blobs = self.files.keys().filter(|path| path.starts_with("blobs/"));
        let unread = blobs.filter(|path| !self.read.contains(*path));
        unread.map(String::as_str).collect()
    }

    /// The image for a processor: its configuration, and the files of its root folder.
    pub fn image(&mut self, arch: &str) -> anyhow::Result<(Value, Vec<Entry>)> {
        let index = self.entry()?;
        let index = self.json(&index)?;
        let manifests = index["manifests"].as_array();
        let of_arch = |it: &&Value| it["platform"]["architecture"] == arch;
        let descriptor = manifests.and_then(|all| all.iter().find(of_arch));
        let descriptor = descriptor.with_context(|| format!("there is no image for {arch}"))?;
        let manifest = self.json(descriptor)?;
        let config = self.json(&manifest["config"])?;
        ensure!(
            config["architecture"] == arch,
            "the image for {arch} is one for {}",
            config["architecture"]
        );
        let mut files = BTreeMap::new();
        let mut digests = Vec::new();
        for layer in manifest["layers"].as_array().context("it has no layers")? {
            let layer = gunzip(&self.blob(layer)?)?;
            digests.push(Value::from(Digest::of(&layer).prefixed()));
            files.extend(untar(&layer)?);
        }
        ensure!(
            config["rootfs"]["diff_ids"] == Value::Array(digests),
            "the image for {arch} lists other layers than it has"
        );
        Ok((config, files.into_values().collect()))
    }
}

/// The content without gzip's compression.
pub fn gunzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut content = Vec::new();
    GzDecoder::new(bytes)
        .read_to_end(&mut content)
        .context("decompress")?;
    Ok(content)
}

/// The files of a tar archive, by path.
pub fn untar(bytes: &[u8]) -> anyhow::Result<BTreeMap<String, Entry>> {
    let mut files = BTreeMap::new();
    for file in tar::Archive::new(bytes).entries()? {
        let mut file = file.context("read the archive")?;
        let path = file.path()?.to_string_lossy().into_owned();
        let executable = file.header().mode()? & 0o111 != 0;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .with_context(|| format!("unpack {path}"))?;
        let entry = Entry {
            path: path.clone(),
            executable,
            bytes,
        };
        let former = files.insert(path.clone(), entry);
        ensure!(former.is_none(), "the archive has {path} twice");
    }
    Ok(files)
}
