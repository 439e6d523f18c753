//! Completeness of publishable packages, absence of tests in them, and their build on docs.rs.

use std::path::Path;

use crate::metadata::{Metadata, Package};
use crate::repository::Repository;
use crate::{Findings, docs};

/// Line of a manifest that leaves the tests out of the package.
const EXCLUDE: &str = "exclude.workspace = true";
/// Lines of a manifest with which docs.rs builds the package: `make docs-rs` passes the same arguments.
const DOCS_RS: &str = r#"[package.metadata.docs.rs]
all-features = true
cargo-args = ["--config", "env.K8S_OPENAPI_ENABLED_VERSION='1.36'"]
"#;

/// Checks every package of the workspace that may be published.
pub fn check(metadata: &Metadata, repository: &Repository) -> Findings {
    let mut findings = Findings::new();
    for package in metadata
        .members()
        .values()
        .filter(|package| package.is_publishable())
    {
        let folder = package.folder(&repository.root);
        let missing = incomplete(package);
        findings.extend(missing.map(|member| format!("{folder}/Cargo.toml: {member} is missing")));
        if !repository.paths.contains(&format!("{folder}/LICENSE")) {
            findings.push(format!(
                "{folder}: LICENSE is missing, link to that of the repository"
            ));
        }
        let changelog = repository.file(&format!("{folder}/CHANGELOG.md"));
        if !changelog.is_some_and(|file| lists_changes(&file.text, &package.version)) {
            findings.push(format!(
                "{folder}/CHANGELOG.md: describe the version {} under `## [Unreleased]` or its own heading",
                package.version
            ));
        }
        let manifest = repository.file(&format!("{folder}/Cargo.toml"));
        if !manifest.is_some_and(|file| file.text.lines().any(|line| line == EXCLUDE)) {
            findings.push(format!(
                "{folder}/Cargo.toml: add `{EXCLUDE}`: packages contain no tests"
            ));
        }
        if !manifest.is_some_and(|file| file.text.contains(DOCS_RS)) {
            findings.push(format!(
                "{folder}/Cargo.toml: add the lines `[package.metadata.docs.rs]` of the other packages"
            ));
        }
        let pages = repository.with_extension("md").into_iter();
        for page in pages.filter(|page| is_packaged(&folder, &page.path)) {
            for link in docs::outward_links(&page.text) {
                findings.push(format!("{}: {link} is not in the package", page.path));
            }
        }
    }
    findings.extend(
        repository
            .file("Cargo.toml")
            .into_iter()
            .flat_map(|root| loose_pins(&root.text)),
    );
    findings
}

/// Reports the packages of the workspace whose version the others don't pin: they are released
/// together, and only equal versions are tested.
fn loose_pins(manifest: &str) -> impl Iterator<Item = String> + '_ {
    let own = manifest
        .lines()
        .filter(|line| line.contains("path = \"crates/") && line.contains("version = "));
    let loose = own.filter(|line| !line.contains("version = \"="));
    loose.map(|line| format!("Cargo.toml: {line:?}: pin the exact version, `version = \"=…\"`"))
}

/// Returns true if a changelog has entries for the version, or for the next one.
fn lists_changes(changelog: &str, version: &str) -> bool {
    let sections = changelog.split("\n## ").skip(1);
    let headings = ["[Unreleased]".to_owned(), format!("[{version}]")];
    sections
        .filter(|section| headings.iter().any(|heading| section.starts_with(heading)))
        .any(|section| section.lines().any(|line| line.starts_with("- ")))
}

/// Returns true for a page at the top of the package's folder.
fn is_packaged(folder: &str, page: &str) -> bool {
    Path::new(page).parent() == Some(Path::new(folder))
}

/// Returns the missing members of the manifest.
fn incomplete(package: &Package) -> impl Iterator<Item = &'static str> {
    let is_there = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    [
        ("description", is_there(&package.description)),
        ("license", is_there(&package.license)),
        ("readme", package.readme.as_deref() == Some("README.md")),
        ("rust-version", is_there(&package.rust_version)),
        ("keywords", !package.keywords.is_empty()),
        ("categories", !package.categories.is_empty()),
    ]
    .into_iter()
    .filter_map(|(member, is_there)| (!is_there).then_some(member))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::repository::SourceFile;

    fn complete() -> Package {
        let some = |text: &str| Some(text.to_owned());
        Package {
            id: "a".to_owned(),
            name: "a".to_owned(),
            version: "0.2.0".to_owned(),
            license: some("Apache-2.0"),
            manifest_path: "/r/crates/a/Cargo.toml".to_owned(),
            description: some("An a."),
            readme: some("README.md"),
            rust_version: some("1.89"),
            keywords: vec!["a".to_owned()],
            categories: vec!["a".to_owned()],
            ..Package::default()
        }
    }

    #[test]
    fn loose_pin_is_reported() {
        let exact = "a = { path = \"crates/a\", version = \"=0.1.0\" }";
        let loose = "b = { path = \"crates/b\", version = \"0.1.0\" }";
        let internal = "c = { path = \"crates/c\" }";
        let manifest = [exact, loose, internal].join("\n");
        let found: Vec<String> = loose_pins(&manifest).collect();
        assert!(
            matches!(&found[..], [one] if one.contains("crates/b")),
            "{found:?}"
        );
    }

    fn found(package: Package, readme: &str) -> Findings {
        let metadata = Metadata {
            workspace_members: vec![package.id.clone()],
            packages: vec![package],
            ..Metadata::default()
        };
        let files = vec![
            SourceFile::new("crates/a/README.md", readme),
            SourceFile::new("crates/a/LICENSE", ""),
            SourceFile::new(
                "crates/a/CHANGELOG.md",
                "# Changelog\n\n## [0.2.0]\n\n- An a.\n",
            ),
            SourceFile::new("crates/a/Cargo.toml", &format!("{EXCLUDE}\n{DOCS_RS}")),
        ];
        let repository = Repository {
            root: PathBuf::from("/r"),
            paths: files.iter().map(|file| file.path.clone()).collect(),
            files,
        };
        check(&metadata, &repository)
    }

    #[test]
    fn complete_package_passes() {
        let readme = "# A\n\n[The guide](GUIDE.md), [the source](https://example.com/../a).\n";
        assert_eq!(found(complete(), readme), Findings::new());
    }

    #[test]
    fn empty_and_earlier_sections_list_no_changes() {
        for (changelog, lists) in [
            ("# Changelog\n\n## [Unreleased]\n\n- An a.\n", true),
            (
                "# Changelog\n\n## [0.2.0] - 2027-01-01\n\n### Added\n\n- An a.\n",
                true,
            ),
            (
                "# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n\n- An a.\n",
                false,
            ),
            ("# Changelog\n", false),
        ] {
            assert_eq!(lists_changes(changelog, "0.2.0"), lists, "{changelog}");
        }
    }

    #[test]
    fn missing_members_tests_and_outward_links_are_found() {
        let package = Package {
            readme: None,
            keywords: Vec::new(),
            manifest_path: "/r/crates/b/Cargo.toml".to_owned(),
            ..complete()
        };
        assert_eq!(
            found(package.clone(), ""),
            [
                "crates/b/Cargo.toml: readme is missing",
                "crates/b/Cargo.toml: keywords is missing",
                "crates/b: LICENSE is missing, link to that of the repository",
                "crates/b/CHANGELOG.md: describe the version 0.2.0 under `## [Unreleased]` or its own heading",
                "crates/b/Cargo.toml: add `exclude.workspace = true`: packages contain no tests",
                "crates/b/Cargo.toml: add the lines `[package.metadata.docs.rs]` of the other packages",
            ]
        );
        let private = Package {
            publish: Some(Vec::new()),
            ..package
        };
        assert_eq!(found(private, ""), Findings::new());
        let linked = found(complete(), "# A\n\n[Figures](../../docs/figures.md)\n");
        let wanted = "crates/a/README.md: ../../docs/figures.md is not in the package";
        assert_eq!(linked, [wanted]);
    }
}
