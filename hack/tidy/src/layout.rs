//! The fixed folders of the repository.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Findings;

/// Every entry of the top level.
const TOP_LEVEL: [&str; 19] = [
    ".cargo",
    ".ci",
    ".clippy.toml",
    ".config",
    ".deny.toml",
    ".gitignore",
    ".rustfmt.toml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "crates",
    "docs",
    "hack",
    "test",
];

/// Every crate folder with its package's name.
pub const CRATES: [(&str, &str); 18] = [
    ("apimachinery", "kube-apimachinery"),
    ("client", "statefulset-client"),
    ("fence", "statefulset-fence"),
    ("controller-util", "statefulset-controller-util"),
    ("history", "statefulset-history"),
    ("pod-control", "statefulset-pod-control"),
    ("opt-ins", "statefulset-opt-ins"),
    ("set-control", "statefulset-set-control"),
    ("controller", "statefulset-controller"),
    ("controller-manager", "statefulset-controller-manager"),
    ("test-control-plane/api", "kube-test-control-plane-api"),
    ("test-control-plane/store", "kube-test-control-plane-store"),
    (
        "test-control-plane/server",
        "kube-test-control-plane-server",
    ),
    (
        "test-control-plane/actors",
        "kube-test-control-plane-actors",
    ),
    (
        "test-control-plane/cluster",
        "kube-test-control-plane-cluster",
    ),
    ("test-control-plane", "kube-test-control-plane"),
    (
        "test-control-plane-statefulset",
        "kube-test-control-plane-statefulset",
    ),
    ("kubectl-sts", "kubectl-sts"),
];

/// The folder of the test control plane: a facade, and the crates beneath it.
const CONTROL_PLANE: &str = "crates/test-control-plane/";

/// Files and folders of the facade itself; `node` and `python` are the packages of these languages.
const FACADE: [&str; 11] = [
    "CHANGELOG.md",
    "Cargo.toml",
    "GUIDE.md",
    "LICENSE",
    "README.md",
    "REFERENCE.md",
    "examples",
    "node",
    "python",
    "src",
    "tests",
];

/// The folders of `test/`; `vectors` contains data, the others are packages.
const TEST_FOLDERS: [&str; 6] = [
    "conformance",
    "embedder",
    "e2e",
    "integration",
    "simulation",
    "vectors",
];

/// Compares the paths of all files with the fixed layout.
pub fn check(paths: &[String]) -> Findings {
    let mut findings = Findings::new();
    compare(
        "the top level",
        &parts(paths, ""),
        &set(&TOP_LEVEL),
        &mut findings,
    );
    let folders: Vec<String> = CRATES
        .iter()
        .map(|(folder, _)| format!("crates/{folder}/"))
        .collect();
    let crates = parts(&folders, "crates/");
    compare("crates", &parts(paths, "crates/"), &crates, &mut findings);
    let mut planes = parts(&folders, CONTROL_PLANE);
    planes.retain(|folder| !folder.is_empty());
    planes.extend(FACADE);
    compare(
        CONTROL_PLANE.trim_end_matches('/'),
        &parts(paths, CONTROL_PLANE),
        &planes,
        &mut findings,
    );
    compare(
        "test",
        &parts(paths, "test/"),
        &set(&TEST_FOLDERS),
        &mut findings,
    );
    let left_behind = |path: &&String| {
        let extension = Path::new(path.as_str()).extension();
        extension.is_some_and(|extension| extension == "orig" || extension == "rej")
    };
    for path in paths.iter().filter(left_behind) {
        findings.push(format!("{path}: delete this leftover of a patch"));
    }
    // In tests/ a shared module must be a mod.rs; otherwise Cargo takes it for a test.
    for path in paths
        .iter()
        .filter(|path| path.ends_with("/mod.rs") && !path.contains("/tests/"))
    {
        findings.push(format!(
            "{path}: name the file after its module and drop mod.rs"
        ));
    }
    findings
}

fn set<'a>(names: &[&'a str]) -> BTreeSet<&'a str> {
    names.iter().copied().collect()
}

/// First path part of every file below `prefix`.
fn parts<'a>(paths: &'a [String], prefix: &str) -> BTreeSet<&'a str> {
    paths
        .iter()
        .filter_map(|path| path.strip_prefix(prefix))
        .filter_map(|rest| rest.split('/').next())
        .collect()
}

fn compare(place: &str, found: &BTreeSet<&str>, wanted: &BTreeSet<&str>, out: &mut Findings) {
    out.extend(
        found
            .difference(wanted)
            .map(|name| format!("{place}: {name} does not belong here")),
    );
    out.extend(
        wanted
            .difference(found)
            .map(|name| format!("{place}: {name} is missing")),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> Vec<String> {
        let files = ["crates", "docs", "hack", "test", ".cargo", ".ci", ".config"];
        let mut paths: Vec<String> = TOP_LEVEL
            .iter()
            .filter(|name| !files.contains(name))
            .map(|name| (*name).to_owned())
            .collect();
        paths.extend(
            ["docs/x.md", "hack/x/x.rs", ".cargo/x", ".ci/x", ".config/x"].map(str::to_owned),
        );
        paths.extend(CRATES.map(|(folder, _)| format!("crates/{folder}/src/lib.rs")));
        paths.extend(FACADE.map(|name| format!("{CONTROL_PLANE}{name}")));
        paths.extend(TEST_FOLDERS.map(|folder| format!("test/{folder}/src/lib.rs")));
        paths
    }

    #[test]
    fn fixed_layout_passes() {
        assert_eq!(check(&complete()), Findings::new());
    }

    #[test]
    fn stray_files_missing_crates_and_mod_rs_are_found() {
        let mut paths = complete();
        paths.retain(|path| !path.starts_with("crates/history/"));
        paths.extend(
            [
                "notes.txt",
                "crates/client/src/queue/mod.rs",
                "crates/client/src/lib.rs.orig",
                "crates/test-control-plane/other/src/lib.rs",
            ]
            .map(str::to_owned),
        );
        assert_eq!(
            check(&paths),
            [
                "the top level: notes.txt does not belong here",
                "crates: history is missing",
                "crates/test-control-plane: other does not belong here",
                "crates/client/src/lib.rs.orig: delete this leftover of a patch",
                "crates/client/src/queue/mod.rs: name the file after its module and drop mod.rs",
            ]
        );
    }
}
