//! Tests of archives, the chart's package and the texts for package managers.

use std::collections::BTreeSet;

use release::digest::Digest;
use serde_json::Value;

use crate::fixture::{DOWNLOADS, Packed, VERSION, root, unpack};

#[test]
fn second_build_has_the_same_bytes() {
    let (one, other) = (Packed::new().all(), Packed::new().all());
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        other.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in &one {
        assert!(other[name] == *bytes, "{name}");
    }
}

#[test]
fn archive_holds_program_licence_bill_and_texts() {
    let packed = Packed::new();
    let name = format!("kubectl-sts-{VERSION}-windows-amd64");
    let files = unpack(&packed.read(&format!("{name}.tar.gz")));
    let paths: Vec<_> = files.keys().map(String::as_str).collect();
    let expected = [
        "LICENSE",
        "completions/kubectl-sts.bash",
        "kubectl-sts.cdx.json",
        "kubectl-sts.exe",
    ];
    assert_eq!(paths, expected.map(|path| format!("{name}/{path}")));
    for (path, file) in &files {
        assert_eq!(file.executable, path.ends_with("kubectl-sts.exe"), "{path}");
    }
}

/// Checks that a text names an archive together with its digest; returns the number of archives.
fn assert_digests(packed: &Packed, program: &str, named: &[(String, String)]) -> usize {
    for (address, digest) in named {
        let file = address.strip_prefix(&format!("{DOWNLOADS}/")).unwrap();
        assert!(file.starts_with(program), "{file}");
        assert_eq!(
            *digest,
            Digest::of(&packed.read(file)).to_string(),
            "{file}"
        );
    }
    let files: BTreeSet<_> = named.iter().map(|(address, _)| address).collect();
    assert_eq!(files.len(), named.len());
    files.len()
}

#[test]
fn plugin_manifest_names_the_archives_that_were_built() {
    let packed = Packed::new();
    let manifest = packed.json("sts.yaml");
    assert_eq!(manifest["metadata"]["name"], "sts");
    assert_eq!(manifest["spec"]["version"], format!("v{VERSION}"));
    let short = manifest["spec"]["shortDescription"].as_str().unwrap();
    // Krew's index refuses longer ones.
    assert!(short.len() <= 50, "{short}");
    let mut named = Vec::new();
    for platform in manifest["spec"]["platforms"].as_array().unwrap() {
        let text = |name: &str| platform[name].as_str().unwrap().to_owned();
        let file = text("uri").rsplit('/').next().unwrap().to_owned();
        let files = unpack(&packed.read(&file));
        let copied = platform["files"].as_array().unwrap();
        let copied: Vec<_> = copied
            .iter()
            .map(|file| file["from"].as_str().unwrap())
            .collect();
        assert!(
            copied.iter().all(|path| files.contains_key(*path)),
            "{copied:?}"
        );
        let bin = format!("/{}", text("bin"));
        assert!(copied.iter().any(|path| path.ends_with(&bin)), "{copied:?}");
        named.push((text("uri"), text("sha256")));
    }
    assert_eq!(assert_digests(&packed, "kubectl-sts-", &named), 3);
}

#[test]
fn formulas_name_the_archives_that_were_built() {
    let packed = Packed::new();
    for (program, count) in [
        ("statefulset-controller-manager", 2),
        ("kubectl-sts", 2),
        ("kube-test-control-plane", 1),
    ] {
        let formula = packed.text(&format!("{program}.rb"));
        let values = |name: &str| {
            let lines = formula.lines().map(str::trim);
            let quoted = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(" \""));
            let values: Vec<_> = quoted
                .map(|rest| rest.trim_end_matches('"').to_owned())
                .collect();
            values
        };
        let named: Vec<_> = values("url").into_iter().zip(values("sha256")).collect();
        assert_eq!(assert_digests(&packed, program, &named), count);
        assert!(formula.contains("depends_on :linux\n"), "{formula}");
        let opened = ["class ", " do\n", " def "].map(|word| formula.matches(word).count());
        let closed = formula.lines().filter(|line| line.trim() == "end").count();
        assert_eq!(opened.iter().sum::<usize>(), closed, "{formula}");
    }
    let formula = packed.text("kubectl-sts.rb");
    let line = "bash_completion.install \"completions/kubectl-sts.bash\" => \"kubectl-sts\"";
    assert!(formula.contains(line), "{formula}");
}

#[test]
fn chart_names_the_published_image_and_has_a_schema() {
    let packed = Packed::new();
    let package = packed.read(&format!("statefulset-controller-manager-{VERSION}.tgz"));
    let files = unpack(&package);
    let name = "statefulset-controller-manager";
    let values = String::from_utf8(files[&format!("{name}/values.yaml")].bytes.clone()).unwrap();
    assert!(values.contains(&format!("repository: registry.invalid/team/{name}\n")));
    for file in ["Chart.yaml", "values.schema.json", "templates/NOTES.txt"] {
        assert!(files.contains_key(&format!("{name}/{file}")), "{file}");
    }
}

#[test]
fn kustomization_archive_is_the_shipped_folder() {
    let packed = Packed::new();
    let name = format!("statefulset-controller-manager-kustomize-{VERSION}");
    let files = unpack(&packed.read(&format!("{name}.tar.gz")));
    let folder = root().join("crates/controller-manager/deploy/kustomize");
    for path in [
        "base/deployment.yaml",
        "overlays/managed/kustomization.yaml",
    ] {
        let shipped = std::fs::read(folder.join(path)).unwrap();
        assert!(files[&format!("{name}/{path}")].bytes == shipped, "{path}");
    }
    let bill = packed.json(&format!("{name}.cdx.json"));
    assert_eq!(
        bill["components"].as_array().map(Vec::len),
        Some(files.len())
    );
}

#[test]
fn every_artefact_has_a_bill_of_materials() {
    let packed = Packed::new();
    let all = packed.all();
    let described = all.keys().filter(|name| {
        let name = name.as_str();
        [".tar.gz", "-image.tar", "-chart.tar"]
            .iter()
            .any(|end| name.ends_with(end))
    });
    let mut count = 0;
    for name in described {
        let stem = name.trim_end_matches(".tar.gz").trim_end_matches(".tar");
        let bill: Value = packed.json(&format!("{stem}.cdx.json"));
        assert!(bill.is_object(), "{name}");
        count += 1;
    }
    assert_eq!(count, 10, "{:?}", all.keys());
}
