//! Tests of the images and of the chart's OCI artefact, read as a client of registries reads them.

use std::collections::{BTreeMap, BTreeSet};

use release::archive::Entry;
use release::digest::Digest;
use serde_json::{Value, json};

use crate::fixture::{Packed, VERSION, decompress, unpack};

/// An OCI layout whose blobs have the digests by which they are named.
struct Layout {
    files: BTreeMap<String, Entry>,
    read: BTreeSet<String>,
}

impl Layout {
    fn open(archive: &[u8]) -> Self {
        let files = unpack(archive);
        let version: Value = serde_json::from_slice(&files["oci-layout"].bytes).unwrap();
        assert_eq!(version, json!({"imageLayoutVersion": "1.0.0"}));
        Self {
            files,
            read: BTreeSet::new(),
        }
    }

    /// The descriptor in the index.
    fn entry(&self) -> Value {
        let index: Value = serde_json::from_slice(&self.files["index.json"].bytes).unwrap();
        assert_eq!(index["schemaVersion"], 2);
        let manifests = index["manifests"].as_array().unwrap();
        assert_eq!(manifests.len(), 1);
        let name = &manifests[0]["annotations"]["org.opencontainers.image.ref.name"];
        assert_eq!(name, VERSION);
        manifests[0].clone()
    }

    /// The blob of a descriptor, verified.
    fn blob(&mut self, descriptor: &Value) -> Vec<u8> {
        let digest = descriptor["digest"].as_str().unwrap();
        let path = format!("blobs/{}", digest.replace(':', "/"));
        let bytes = self.files[&path].bytes.clone();
        assert_eq!(Digest::of(&bytes).prefixed(), digest);
        assert_eq!(descriptor["size"], bytes.len());
        self.read.insert(path);
        bytes
    }

    fn json(&mut self, descriptor: &Value) -> Value {
        let document: Value = serde_json::from_slice(&self.blob(descriptor)).unwrap();
        if let Some(media_type) = document.get("mediaType") {
            assert_eq!(*media_type, descriptor["mediaType"]);
        }
        document
    }

    /// Checks that there is no blob that nothing refers to.
    fn assert_all_read(&self) {
        let all: BTreeSet<_> = self.files.keys().cloned().collect();
        let unread: Vec<_> = all.difference(&self.read).collect();
        assert_eq!(unread, ["index.json", "oci-layout"]);
    }
}

#[test]
fn image_holds_one_program_for_each_platform() {
    let packed = Packed::new();
    let name = "statefulset-controller-manager";
    let mut layout = Layout::open(&packed.read(&format!("{name}-{VERSION}-image.tar")));
    let entry = layout.entry();
    let pinned = packed.text(&format!("{name}-{VERSION}-image.digest"));
    assert_eq!(
        pinned,
        format!("{name}@{}\n", entry["digest"].as_str().unwrap())
    );
    let index = layout.json(&entry);
    let mut platforms = Vec::new();
    for descriptor in index["manifests"].as_array().unwrap() {
        let manifest = layout.json(descriptor);
        let config = layout.json(&manifest["config"]);
        for (member, value) in descriptor["platform"].as_object().unwrap() {
            assert_eq!(config[member], *value);
        }
        let layers = manifest["layers"].as_array().unwrap();
        assert_eq!(layers.len(), 1);
        let layer = decompress(&layout.blob(&layers[0]));
        assert_eq!(
            config["rootfs"]["diff_ids"],
            json!([Digest::of(&layer).prefixed()])
        );
        let files = unpack(&layer);
        let target = match config["architecture"].as_str().unwrap() {
            "amd64" => "x86_64-unknown-linux-gnu",
            _ => "aarch64-unknown-linux-gnu",
        };
        let program = Entry::program(name, format!("{name} for {target}\n"));
        assert_eq!(files.into_values().collect::<Vec<_>>(), [program]);
        assert_process(&config["config"]);
        platforms.push(config["architecture"].clone());
    }
    assert_eq!(platforms, ["amd64", "arm64"]);
    layout.assert_all_read();
}

/// Checks that the process is the one that the shipped Deployment demands.
fn assert_process(process: &Value) {
    assert_eq!(process["User"], "65532:65532");
    assert_eq!(
        process["Entrypoint"],
        json!(["/statefulset-controller-manager"])
    );
    assert_eq!(process["ExposedPorts"], json!({"10257/tcp": {}}));
    let labels = &process["Labels"];
    let label = |name: &str| labels[format!("org.opencontainers.image.{name}")].clone();
    assert_eq!(label("version"), VERSION);
    assert_eq!(
        label("revision"),
        "0123456789abcdef0123456789abcdef01234567"
    );
    assert_eq!(label("source"), "https://source.invalid/statefulset");
    assert_eq!(label("licenses"), "Apache-2.0");
    assert_eq!(label("created"), "2025-10-09T08:53:20Z");
}

#[test]
fn image_lists_only_the_platforms_that_were_built() {
    let packed = Packed::new();
    let archive = packed.read(&format!("kube-test-control-plane-{VERSION}-image.tar"));
    let mut layout = Layout::open(&archive);
    let entry = layout.entry();
    let index = layout.json(&entry);
    let manifests = index["manifests"].as_array().unwrap();
    assert_eq!(manifests.len(), 1);
    assert_eq!(manifests[0]["platform"]["architecture"], "amd64");
}

#[test]
fn chart_artefact_is_what_helm_pulls() {
    let packed = Packed::new();
    let package = packed.read(&format!("statefulset-controller-manager-{VERSION}.tgz"));
    let archive = packed.read(&format!(
        "statefulset-controller-manager-{VERSION}-chart.tar"
    ));
    let mut layout = Layout::open(&archive);
    let entry = layout.entry();
    let manifest = layout.json(&entry);
    let config = &manifest["config"];
    assert_eq!(
        config["mediaType"],
        "application/vnd.cncf.helm.config.v1+json"
    );
    let metadata = layout.json(config);
    assert_eq!(metadata["name"], "statefulset-controller-manager");
    assert_eq!(metadata["version"], VERSION);
    assert_eq!(metadata["apiVersion"], "v2");
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    let media_type = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    assert_eq!(layers[0]["mediaType"], media_type);
    assert_eq!(layout.blob(&layers[0]), package);
    layout.assert_all_read();
}
