//! Direction of the dependencies between the workspace's packages.

use std::collections::BTreeMap;

use crate::{
    Findings,
    layout::CRATES,
    metadata::{Metadata, Package},
};

/// The crates from left to right: each may depend only on crates before it.
pub const DEPENDENCY_ORDER: [&str; 10] = [
    "kube-apimachinery",
    "statefulset-client",
    "statefulset-fence",
    "statefulset-controller-util",
    "statefulset-history",
    "statefulset-pod-control",
    "statefulset-opt-ins",
    "statefulset-set-control",
    "statefulset-controller",
    "statefulset-controller-manager",
];

/// The crates of the test control plane from left to right. They contain no StatefulSet logic.
const CONTROL_PLANE: [&str; 6] = [
    "kube-test-control-plane-api",
    "kube-test-control-plane-store",
    "kube-test-control-plane-server",
    "kube-test-control-plane-actors",
    "kube-test-control-plane-cluster",
    TEST_CONTROL_PLANE,
];

/// The controller as an actor of the test control plane, above both. The facade may use it only as an
/// optional dependency: that of its program.
const STATEFUL_SET_ACTOR: &str = "kube-test-control-plane-statefulset";

/// The facade, allowed only in `[dev-dependencies]`.
const TEST_CONTROL_PLANE: &str = "kube-test-control-plane";

/// The repository checks, allowed only in `[dev-dependencies]`: the homes of ported tests compare them
/// with upstream's.
const TIDY: &str = "tidy";

/// The public registry's name in lock files.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks names and dependencies of the packages under `crates/`, and the registry of every foreign
/// package.
pub fn check(metadata: &Metadata) -> Findings {
    let members = metadata.members();
    let mut findings = Findings::new();
    for (folder, name) in CRATES {
        if !members.contains_key(name) {
            findings.push(format!("crates/{folder}: its package must be named {name}"));
        }
    }
    for (name, package) in &members {
        findings.extend(directions(name, package, &members));
    }
    for package in &metadata.packages {
        if package
            .source
            .as_deref()
            .is_some_and(|source| source != REGISTRY)
        {
            findings.push(format!("{}: is not from the public registry", package.name));
        }
    }
    findings
}

/// Findings of one package of the workspace.
fn directions(name: &str, package: &Package, members: &BTreeMap<&str, &Package>) -> Findings {
    let position = DEPENDENCY_ORDER.iter().position(|known| *known == name);
    let plane = CONTROL_PLANE.iter().position(|known| *known == name);
    let is_actor = name == STATEFUL_SET_ACTOR;
    if position.is_none() && plane.is_none() && !is_actor {
        return Findings::new();
    }
    let own = package
        .dependencies
        .iter()
        .filter(|found| members.contains_key(found.name.as_str()));
    own.filter_map(|dependency| {
        let target = dependency.name.as_str();
        if target == TIDY {
            return (!dependency.is_dev()).then(|| format!("{name}: must not depend on {target}"));
        }
        let allowed = match (position, plane) {
            (_, Some(_)) if target == STATEFUL_SET_ACTOR => {
                name == TEST_CONTROL_PLANE && dependency.optional
            }
            (_, Some(plane)) => {
                target == "kube-apimachinery" || CONTROL_PLANE[..plane].contains(&target)
            }
            _ if is_actor && target != TEST_CONTROL_PLANE => {
                target == "statefulset-controller" || CONTROL_PLANE.contains(&target)
            }
            _ if target == TEST_CONTROL_PLANE => dependency.is_dev(),
            (Some(position), _) => DEPENDENCY_ORDER[..position].contains(&target) || target == name,
            (None, None) => true,
        };
        (!allowed).then(|| format!("{name}: must not depend on {target}"))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|(name, kind)| Dependency {
                name: (*name).to_owned(),
                kind: kind.map(str::to_owned),
                ..Dependency::default()
            })
            .collect();
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            dependencies,
            ..Package::default()
        }
    }

    fn workspace(changed: Package) -> Metadata {
        let mut packages: Vec<Package> = CRATES
            .iter()
            .map(|(_, name)| package(name, &[]))
            .filter(|package| package.name != changed.name)
            .collect();
        packages.push(changed);
        let workspace_members = packages.iter().map(|package| package.id.clone()).collect();
        Metadata {
            packages,
            workspace_members,
            ..Metadata::default()
        }
    }

    #[test]
    fn crates_may_use_the_left_and_the_control_plane_in_tests() {
        let history = package(
            "statefulset-history",
            &[
                ("statefulset-client", None),
                (TEST_CONTROL_PLANE, Some("dev")),
                ("serde", None),
            ],
        );
        assert_eq!(check(&workspace(history)), Findings::new());
    }

    #[test]
    fn crates_must_not_use_the_right_even_in_tests() {
        let history = package(
            "statefulset-history",
            &[("statefulset-set-control", Some("dev"))],
        );
        assert_eq!(
            check(&workspace(history)),
            ["statefulset-history: must not depend on statefulset-set-control"]
        );
    }

    #[test]
    fn shipped_crates_must_not_use_test_packages() {
        let mut metadata = workspace(package(
            "statefulset-controller",
            &[(TEST_CONTROL_PLANE, None), ("conformance", Some("dev"))],
        ));
        metadata
            .packages
            .push(package("conformance", &[("statefulset-controller", None)]));
        metadata.workspace_members.push("conformance".to_owned());
        assert_eq!(
            check(&metadata),
            [
                "statefulset-controller: must not depend on kube-test-control-plane",
                "statefulset-controller: must not depend on conformance",
            ]
        );
    }

    #[test]
    fn control_plane_must_not_use_stateful_set_logic() {
        let plane = package(
            TEST_CONTROL_PLANE,
            &[
                ("kube-apimachinery", None),
                ("statefulset-client", Some("dev")),
            ],
        );
        assert_eq!(
            check(&workspace(plane)),
            ["kube-test-control-plane: must not depend on statefulset-client"]
        );
    }

    #[test]
    fn control_planes_program_alone_may_run_the_controller() {
        let with_actor = |name: &str, optional: bool| {
            let mut plane = package(name, &[(STATEFUL_SET_ACTOR, None)]);
            plane.dependencies[0].optional = optional;
            check(&workspace(plane))
        };
        assert_eq!(with_actor(TEST_CONTROL_PLANE, true), Findings::new());
        for (name, optional) in [
            (TEST_CONTROL_PLANE, false),
            ("kube-test-control-plane-cluster", true),
        ] {
            let finding = format!("{name}: must not depend on {STATEFUL_SET_ACTOR}");
            assert_eq!(with_actor(name, optional), [finding]);
        }
        let actor = package(
            STATEFUL_SET_ACTOR,
            &[
                ("kube-test-control-plane-cluster", None),
                ("statefulset-controller", None),
                (TEST_CONTROL_PLANE, Some("dev")),
                ("statefulset-set-control", None),
            ],
        );
        assert_eq!(
            check(&workspace(actor)),
            ["kube-test-control-plane-statefulset: must not depend on statefulset-set-control"]
        );
    }

    #[test]
    fn control_plane_crate_uses_only_crates_to_its_left() {
        let server = package(
            "kube-test-control-plane-server",
            &[
                ("kube-test-control-plane-store", None),
                ("kube-test-control-plane-actors", Some("dev")),
            ],
        );
        assert_eq!(
            check(&workspace(server)),
            ["kube-test-control-plane-server: must not depend on kube-test-control-plane-actors"]
        );
    }

    #[test]
    fn shipped_crate_must_not_use_the_control_plane() {
        let history = package(
            "statefulset-history",
            &[("kube-test-control-plane-api", Some("dev"))],
        );
        assert_eq!(
            check(&workspace(history)),
            ["statefulset-history: must not depend on kube-test-control-plane-api"]
        );
    }

    #[test]
    fn renamed_crates_and_git_dependencies_are_found() {
        let mut metadata = workspace(package("statefulset-history", &[]));
        metadata
            .packages
            .retain(|package| package.name != "statefulset-client");
        metadata.packages.push(Package {
            source: Some("git+https://example.com/fork".to_owned()),
            ..package("fork", &[])
        });
        assert_eq!(
            check(&metadata),
            [
                "crates/client: its package must be named statefulset-client",
                "fork: is not from the public registry",
            ]
        );
    }
}
