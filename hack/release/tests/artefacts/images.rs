//! Tests of the images and of the chart's OCI artefact, read as a client of registries reads them.

use release::archive::Entry;
use release::opened::Opened;
use serde_json::{Value, json};

use crate::fixture::{Packed, VERSION};

#[test]
fn image_holds_one_program_for_each_platform() {
    let packed = Packed::new();
    let name = "statefulset-controller-manager";
    let archive = packed.read(&format!("{name}-{VERSION}-image.tar"));
    let mut layout = Opened::of(&archive).unwrap();
    let entry = layout.entry().unwrap();
    let tag = &entry["annotations"]["org.opencontainers.image.ref.name"];
    assert_eq!(tag, VERSION);
    let pinned = packed.text(&format!("{name}-{VERSION}-image.digest"));
    assert_eq!(
        pinned,
        format!("{name}@{}\n", entry["digest"].as_str().unwrap())
    );
    let platforms = [
        ("amd64", "x86_64-unknown-linux-gnu"),
        ("arm64", "aarch64-unknown-linux-gnu"),
    ];
    for (arch, target) in platforms {
        let (config, files) = layout.image(arch).unwrap();
        let program = Entry::program(name, format!("{name} for {target}\n"));
        assert_eq!(files, [program]);
        assert_eq!(config["os"], "linux");
        assert_process(&config["config"]);
    }
    assert_eq!(layout.unread(), [""; 0]);
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
    let mut layout = Opened::of(&archive).unwrap();
    assert!(layout.image("amd64").is_ok());
    let error = layout.image("arm64").unwrap_err();
    assert_eq!(error.to_string(), "there is no image for arm64");
    assert_eq!(layout.unread(), [""; 0]);
}

#[test]
fn changed_blob_is_refused() {
    let packed = Packed::new();
    let mut archive = packed.read(&format!("kube-test-control-plane-{VERSION}-image.tar"));
    let title = b"org.opencontainers.image.title";
    let at = archive
        .windows(title.len())
        .rposition(|bytes| bytes == title);
    archive[at.unwrap()] = b'O';
    let error = Opened::of(&archive).unwrap().image("amd64").unwrap_err();
    assert!(error.to_string().contains("another digest"), "{error}");
}

#[test]
fn chart_artefact_is_what_helm_pulls() {
    let packed = Packed::new();
    let package = packed.read(&format!("statefulset-controller-manager-{VERSION}.tgz"));
    let archive = packed.read(&format!(
        "statefulset-controller-manager-{VERSION}-chart.tar"
    ));
    let mut layout = Opened::of(&archive).unwrap();
    let entry = layout.entry().unwrap();
    let manifest = layout.json(&entry).unwrap();
    let config = &manifest["config"];
    assert_eq!(
        config["mediaType"],
        "application/vnd.cncf.helm.config.v1+json"
    );
    let metadata = layout.json(config).unwrap();
    assert_eq!(metadata["name"], "statefulset-controller-manager");
    assert_eq!(metadata["version"], VERSION);
    assert_eq!(metadata["apiVersion"], "v2");
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    let media_type = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    assert_eq!(layers[0]["mediaType"], media_type);
    assert_eq!(layout.blob(&layers[0]).unwrap(), package);
    assert_eq!(layout.unread(), [""; 0]);
}
