//! Required and forbidden features: k8s-openapi's version, `serde_json`'s, test doubles.

use std::path::Path;

use crate::{
    Findings,
    metadata::{Metadata, Package},
};

const K8S_OPENAPI: &str = "k8s-openapi";

/// Programs whose library serves only their own tests.
const PROGRAMS: [&str; 1] = ["kubectl-sts"];

/// Checks that libraries name an API version only for their tests, and that binaries and the
/// packages under `test/` name one.
pub fn check_api_version(metadata: &Metadata, root: &Path) -> Findings {
    let mut findings = Findings::new();
    for (name, package) in metadata.members() {
        let folder = package.folder(root);
        let names_api = package
            .dependencies
            .iter()
            .any(|dependency| dependency.name == K8S_OPENAPI || dependency.name == "kube");
        let (normal, dev) = (picks_version(package, false), picks_version(package, true));
        let is_program = PROGRAMS.contains(&name);
        if folder.starts_with("crates/") && package.is_library() && !is_program {
            if normal {
                findings.push(format!(
                    "{name}: names a version feature of k8s-openapi in [dependencies]; that is the \
                     embedder's choice"
                ));
            }
            if names_api && !dev {
                findings.push(format!(
                    "{name}: needs k8s-openapi with a version feature in [dev-dependencies]"
                ));
            }
        } else if names_api && !normal {
            findings.push(format!(
                "{name}: needs k8s-openapi with a version feature in [dependencies]"
            ));
        }
    }
    findings
}

fn picks_version(package: &Package, dev: bool) -> bool {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.name == K8S_OPENAPI && dependency.is_dev() == dev)
        .flat_map(|dependency| &dependency.features)
        .any(|feature| feature.starts_with("v1_") || feature == "latest" || feature == "earliest")
}

/// Checks that `preserve_order` and `arbitrary_precision` are off and `raw_value` is on. Revision
/// bytes depend on sorted keys and plain numbers.
pub fn check_serde_json(metadata: &Metadata) -> Findings {
    let mut findings = Findings::new();
    let ids: Vec<&str> = metadata
        .packages
        .iter()
        .filter(|package| package.name == "serde_json")
        .map(|package| package.id.as_str())
        .collect();
    for node in metadata
        .resolve
        .nodes
        .iter()
        .filter(|node| ids.contains(&node.id.as_str()))
    {
        let on = |feature: &str| node.features.iter().any(|found| found == feature);
        for feature in ["preserve_order", "arbitrary_precision"] {
            if on(feature) {
                findings.push(format!("serde_json: {feature} is on and must stay off"));
            }
        }
        if !on("raw_value") {
            findings.push("serde_json: raw_value must be on".to_owned());
        }
    }
    findings
}

/// Checks that a shipped binary's normal graph (lines `name version features`) contains no test
/// double.
pub fn check_binary_graph(binary: &str, graph: &str) -> Findings {
    let mut findings = Findings::new();
    for line in graph.lines() {
        let mut words = line.trim_end_matches("(*)").split_whitespace();
        let name = words.next().unwrap_or_default();
        if name == "mockall" {
            findings.push(format!("{binary}: mockall is in its normal graph"));
        }
        let ours = name.starts_with("statefulset-") || name.starts_with("kube-apimachinery");
        let features = words.next_back().unwrap_or_default();
        if ours && features.split(',').any(|feature| feature == "testing") {
            findings.push(format!(
                "{binary}: {name} is linked with its testing feature"
            ));
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Dependency, Node, Resolve, Target};

    fn member(folder: &str, kind: &str, dependencies: &[(Option<&str>, &[&str])]) -> Metadata {
        let package = Package {
            id: "id".to_owned(),
            name: "p".to_owned(),
            manifest_path: format!("/r/{folder}/Cargo.toml"),
            targets: vec![Target {
                kind: vec![kind.to_owned()],
                src_path: String::new(),
            }],
            dependencies: dependencies
                .iter()
                .map(|(kind, features)| Dependency {
                    name: K8S_OPENAPI.to_owned(),
                    kind: kind.map(str::to_owned),
                    features: features
                        .iter()
                        .map(|feature| (*feature).to_owned())
                        .collect(),
                    ..Dependency::default()
                })
                .collect(),
            ..Package::default()
        };
        Metadata {
            packages: vec![package],
            workspace_members: vec!["id".to_owned()],
            ..Metadata::default()
        }
    }

    #[test]
    fn open_libraries_and_versioned_binaries_pass() {
        let root = Path::new("/r");
        let library = member(
            "crates/p",
            "lib",
            &[(None, &["std"]), (Some("dev"), &["v1_36"])],
        );
        assert_eq!(check_api_version(&library, root), Findings::new());
        let binary = member("crates/p", "bin", &[(None, &["v1_36"])]);
        assert_eq!(check_api_version(&binary, root), Findings::new());
    }

    #[test]
    fn versioned_libraries_and_open_test_packages_are_found() {
        let root = Path::new("/r");
        let library = member("crates/p", "lib", &[(None, &["latest"])]);
        assert_eq!(check_api_version(&library, root).len(), 2);
        let tests = member("test/p", "lib", &[(Some("dev"), &["v1_36"])]);
        assert_eq!(
            check_api_version(&tests, root),
            ["p: needs k8s-openapi with a version feature in [dependencies]"]
        );
    }

    #[test]
    fn wrong_serde_json_features_are_found() {
        let metadata = Metadata {
            packages: vec![Package {
                id: "j".to_owned(),
                name: "serde_json".to_owned(),
                ..Package::default()
            }],
            resolve: Resolve {
                nodes: vec![Node {
                    id: "j".to_owned(),
                    features: vec!["preserve_order".to_owned()],
                }],
            },
            ..Metadata::default()
        };
        assert_eq!(
            check_serde_json(&metadata),
            [
                "serde_json: preserve_order is on and must stay off",
                "serde_json: raw_value must be on"
            ]
        );
    }

    #[test]
    fn values_sort_keys_and_drop_number_text() {
        let value: serde_json::Value =
            serde_json::from_str(r#"{"b":1,"a":1e1}"#).expect("the text is JSON");
        assert_eq!(value.to_string(), r#"{"a":10.0,"b":1}"#);
        let typed: serde_json::Value = serde_json::json!({"b": 1, "a": 2});
        assert_eq!(typed.to_string(), r#"{"a":2,"b":1}"#);
    }

    #[test]
    fn test_doubles_in_binaries_are_found() {
        let graph = "statefulset-history v0.1.0 (crates/history) testing (*)\nmockall v0.15.0 \n\
                     serde v1.0.0 default,testing\n";
        assert_eq!(
            check_binary_graph("manager", graph),
            [
                "manager: mockall is in its normal graph",
                "manager: statefulset-history is linked with its testing feature",
            ]
        );
    }
}
