//! Rendering by kubectl: of the overlays, equal to the built-in one, and of the overlays in the
//! documentation.

use std::path::Path;
use std::process::Command;

use conformance::kubectl::Programs;
use e2e::deploy::{build, build_with, documents, kustomization};
use serde_json::{Value, json};

use super::{NAME, OVERLAYS, by_key, of_kind};

/// Objects that `kubectl kustomize` renders from a folder.
fn render(folder: &Path) -> Vec<Value> {
    let programs = Programs::find(None, None, None).unwrap_or_else(|error| panic!("{error:#}"));
    let mut command = Command::new(&programs.kubectl);
    let output = command.arg("kustomize").arg(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let rendered = String::from_utf8(output.stdout).unwrap();
    documents(&rendered, &folder.to_string_lossy())
}

/// Renders the first overlay of a page, from a folder in the build directory.
fn render_example(page: &str, name: &str) -> Vec<Value> {
    let (_, rest) = page.split_once("```yaml\napiVersion: kustomize").unwrap();
    let (overlay, _) = rest.split_once("```").unwrap();
    let text = format!("apiVersion: kustomize{overlay}");
    render_text(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), &text)
}

/// Renders a shipped overlay with a component.
fn render_with(folder: &Path, overlay: &str, component: &str) -> Vec<Value> {
    let shipped = "../statefulset/crates/controller-manager/deploy/kustomize";
    let text = format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n\
         resources: [{shipped}/{overlay}]\ncomponents: [{shipped}/{component}]\n"
    );
    render_text(folder, &text)
}

/// Renders a kustomization next to the checkout of the repository, from this folder.
fn render_text(folder: &Path, text: &str) -> Vec<Value> {
    std::fs::create_dir_all(folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().unwrap();
    // kustomize accepts only relative paths.
    let up = "../".repeat(folder.components().count() - 1);
    let checkout = format!("{up}{}/", root.strip_prefix("/").unwrap().display());
    let text = text.replace("../statefulset/", &checkout);
    std::fs::write(folder.join("kustomization.yaml"), text).unwrap();
    render(&folder)
}

#[test]
fn kubectl_renders_the_overlays_identically() {
    for overlay in OVERLAYS {
        let rendered = render(&kustomization(overlay));
        assert_eq!(by_key(rendered), by_key(build(&kustomization(overlay))));
    }
}

#[test]
fn kubectl_renders_the_components_identically() {
    for overlay in OVERLAYS {
        for name in ["fence", "opt-ins"] {
            let component = format!("components/{name}");
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            let rendered = render_with(&folder, overlay, &component);
            let built = build_with(&kustomization(overlay), &kustomization(&component));
            assert_eq!(by_key(rendered), by_key(built));
        }
    }
}

#[test]
fn documented_overlay_sets_image_and_arguments() {
    let page = include_str!("../../../../docs/operating.md");
    let objects = render_example(page, "installation");
    let container = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], format!("REGISTRY/{NAME}:0.1.0"));
    let arguments = container["args"].as_array().unwrap();
    assert!(arguments.contains(&json!("--concurrent-statefulset-syncs=10")));
}

#[test]
fn documented_shard_has_its_own_account_and_lease() {
    let page = include_str!("../../../../docs/scaling.md");
    let objects = render_example(page, "shard");
    let account = &of_kind(&objects, "ServiceAccount")["metadata"];
    let pod = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], account["name"]);
    assert_ne!(account["name"], NAME);
    let container = &pod["containers"][0];
    assert_eq!(container["image"], format!("REGISTRY/{NAME}:0.1.0"));
    let arguments = container["args"].as_array().unwrap();
    assert!(arguments.contains(&json!("--shard=0/2")), "{arguments:?}");

    let bindings = objects.iter().filter(|it| it["roleRef"].is_object());
    let bindings: Vec<&Value> = bindings.collect();
    assert_eq!(bindings.len(), 4);
    for binding in bindings {
        let subject = &binding["subjects"][0];
        assert_eq!(subject["name"], account["name"], "{binding:#}");
        assert_eq!(subject["namespace"], account["namespace"], "{binding:#}");
    }
    let lease = format!("{NAME}-shard-0-of-2");
    let rules = &of_kind(&objects, "Role")["rules"];
    assert_eq!(rules[1]["resourceNames"], json!([lease]));
    let schemas = objects.iter().filter(|it| it["kind"] == "FlowSchema");
    for schema in schemas {
        let subject = &schema["spec"]["rules"][0]["subjects"][0]["serviceAccount"];
        assert_eq!(subject["name"], account["name"], "{schema:#}");
    }
}
