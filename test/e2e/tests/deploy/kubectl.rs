//! Comparison of kubectl's rendering of the overlays with the built-in one.

use std::process::Command;

use conformance::kubectl::Programs;
use e2e::deploy::{build, documents, kustomization};

use super::{OVERLAYS, by_key};

#[test]
fn kubectl_renders_the_overlays_identically() {
    let programs = Programs::find(None, None, None).unwrap_or_else(|error| panic!("{error:#}"));
    for overlay in OVERLAYS {
        let mut command = Command::new(&programs.kubectl);
        let output = command
            .arg("kustomize")
            .arg(kustomization(overlay))
            .output();
        let output = output.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let rendered = documents(&String::from_utf8(output.stdout).unwrap(), overlay);
        assert_eq!(by_key(rendered), by_key(build(&kustomization(overlay))));
    }
}
