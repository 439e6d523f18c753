//! OCI image layouts, as tar archives that skopeo, oras, podman and containerd read.
//!
//! The format is that of the OCI Image Format Specification 1.1: one index, and blobs named by digest.

use serde_json::{Value, json};

use crate::archive::{Entry, tar};
use crate::digest::Digest;

/// Media type of an index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of a manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A layout under construction.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    blobs: Vec<(Digest, Vec<u8>)>,
}

impl Layout {
    /// Adds a blob, and returns its descriptor.
    pub fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = Digest::of(&bytes);
        let descriptor = json!({
            "mediaType": media_type,
            "digest": digest.prefixed(),
            "size": bytes.len(),
        });
        if self.blobs.iter().all(|(other, _)| *other != digest) {
            self.blobs.push((digest, bytes));
        }
        descriptor
    }

    /// Adds a JSON document, and returns its descriptor.
    pub fn add_json(&mut self, media_type: &str, document: &Value) -> Value {
        self.add(media_type, document.to_string().into_bytes())
    }

    /// The archive, whose index names this descriptor by a tag.
    pub fn archive(mut self, mut named: Value, tag: &str, seconds: u64) -> anyhow::Result<Vec<u8>> {
        named["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]});
        let version = json!({"imageLayoutVersion": "1.0.0"});
        self.blobs.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut entries = vec![
            Entry::data("oci-layout", version.to_string()),
            Entry::data("index.json", index.to_string()),
        ];
        for (digest, bytes) in self.blobs {
            entries.push(Entry::data(format!("blobs/sha256/{digest}"), bytes));
        }
        tar(&entries, seconds)
    }
}
