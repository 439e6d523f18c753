//! Unused dependencies.

use std::{collections::BTreeSet, path::Path};

use crate::{
    Findings,
    metadata::{Dependency, Metadata, Package},
    repository::{Repository, SourceFile, folder, join},
};

/// Packages that are declared for their features alone.
const FOR_FEATURES: [&str; 1] = ["k8s-openapi"];

/// Finds dependencies that no source file of their package names, and entries of the workspace's
/// table that no package declares.
pub fn check(metadata: &Metadata, repository: &Repository) -> Findings {
    let mut findings = Findings::new();
    for (name, package) in metadata.members() {
        let texts = texts_of(package, &repository.root, &repository.files);
        for dependency in &package.dependencies {
            let used = FOR_FEATURES.contains(&dependency.name.as_str())
                || texts
                    .iter()
                    .any(|text| names(text, &crate_name(dependency)));
            if !used {
                findings.push(format!(
                    "{name}: no source file names {}; drop the dependency",
                    dependency.name
                ));
            }
        }
    }
    let manifests = repository.with_extension("toml");
    findings.extend(check_table(&manifests));
    findings
}

/// Name of a dependency in the package's sources.
fn crate_name(dependency: &Dependency) -> String {
    let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
    name.replace('-', "_")
}

/// The package's own Rust files, and the texts that these include.
fn texts_of<'a>(package: &Package, root: &Path, files: &'a [SourceFile]) -> Vec<&'a str> {
    let own = format!("{}/", package.folder(root));
    let sources = files
        .iter()
        .filter(|file| file.has_extension("rs") && file.path.starts_with(&own));
    let mut texts = Vec::new();
    for source in sources {
        texts.push(source.text.as_str());
        let pages = source.text.split("include_str!(\"").skip(1);
        let pages: BTreeSet<String> = pages
            .filter_map(|rest| rest.split('"').next())
            .map(|page| join(folder(&source.path), page))
            .collect();
        let included = files.iter().filter(|file| pages.contains(&file.path));
        texts.extend(included.map(|file| file.text.as_str()));
    }
    texts
}

/// True if a text names a crate: in a path, or in a `use` of the crate.
fn names(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let begins = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_import = before.ends_with("use ") || before.ends_with("extern crate ");
        let ends = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        begins && ends && (after.starts_with("::") || is_import)
    })
}

/// Finds entries of `[workspace.dependencies]` that no manifest declares.
fn check_table(manifests: &[SourceFile]) -> Findings {
    let mut declared = BTreeSet::new();
    let mut table = Vec::new();
    for manifest in manifests {
        let mut section = "";
        let lines = manifest.text.lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']');
            } else if let Some((key, _)) = line.split_once([' ', '.', '=']) {
                match section {
                    "workspace.dependencies" => table.push(key),
                    "dependencies" | "dev-dependencies" | "build-dependencies" => {
                        declared.insert(key);
                    }
                    _ => {}
                }
            }
        }
    }
    table.retain(|name| !declared.contains(name));
    let drop_it = |name: &str| format!("Cargo.toml: no package declares {name}; drop the entry");
    table.into_iter().map(drop_it).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn workspace(dependencies: &[&str], files: &[(&str, &str)]) -> (Metadata, Repository) {
        let dependencies = dependencies.iter().map(|name| Dependency {
            name: (*name).to_owned(),
            ..Dependency::default()
        });
        let package = Package {
            id: "a".to_owned(),
            name: "a".to_owned(),
            manifest_path: "/r/crates/a/Cargo.toml".to_owned(),
            dependencies: dependencies.collect(),
            ..Package::default()
        };
        let metadata = Metadata {
            packages: vec![package],
            workspace_members: vec!["a".to_owned()],
            ..Metadata::default()
        };
        let files = files.iter().map(|(path, text)| SourceFile::new(path, text));
        let repository = Repository {
            root: PathBuf::from("/r"),
            paths: Vec::new(),
            files: files.collect(),
        };
        (metadata, repository)
    }

    fn findings(dependencies: &[&str], files: &[(&str, &str)]) -> Findings {
        let (metadata, repository) = workspace(dependencies, files);
        check(&metadata, &repository)
    }

    #[test]
    fn a_dependency_that_no_source_names_is_found() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "// No axum, no my_tower::x.\nlet tower = 1;\n",
            ),
            ("crates/b/src/lib.rs", "use tower::Service;\n"),
        ];
        assert_eq!(
            findings(&["tower"], &files),
            ["a: no source file names tower; drop the dependency"]
        );
    }

    #[test]
    fn paths_imports_and_included_pages_name_a_dependency() {
        let files = [
            (
                "crates/a/tests/t.rs",
                "use rustls;\nfn f() { tokio_util::g() }\n",
            ),
            (
                "crates/a/src/lib.rs",
                "#![doc = include_str!(\"../../../docs/page.md\")]\n",
            ),
            ("docs/page.md", "use tower::Service;\n"),
        ];
        let dependencies = ["rustls", "tokio-util", "tower", "k8s-openapi"];
        assert_eq!(findings(&dependencies, &files), Findings::new());
    }

    #[test]
    fn undeclared_table_entry_is_found() {
        let files = [
            (
                "Cargo.toml",
                "[workspace.dependencies]\n# A comment.\naxum = \"0.8\"\ntower = \"0.5\"\n\n[profile.dev]\nx = 1\n",
            ),
            (
                "crates/a/Cargo.toml",
                "[dependencies]\ntower.workspace = true\n",
            ),
        ];
        assert_eq!(
            findings(&[], &files),
            ["Cargo.toml: no package declares axum; drop the entry"]
        );
    }
}
