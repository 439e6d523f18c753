//! Bills of materials of artefacts that contain files, in the format `CycloneDX` 1.5. `make sbom`
//! writes those of programs.

use serde_json::{Value, json};

use crate::archive::Entry;
use crate::digest::Digest;
use crate::release::Release;

/// The bill of an artefact that contains these files; `kind` is a type of the format,
/// such as `container`.
pub fn of_files(
    release: &Release,
    kind: &str,
    name: &str,
    files: &[Entry],
) -> anyhow::Result<Value> {
    let components: Vec<Value> = files
        .iter()
        .map(|entry| {
            json!({
                "type": "file",
                "name": entry.path,
                "hashes": [{"alg": "SHA-256", "content": Digest::of(&entry.bytes).to_string()}],
            })
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": release.time()?,
            "component": {
                "type": kind,
                "name": name,
                "version": release.version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
    }))
}
