//! The environment's choice of a backend, and the errors of invalid settings.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use kube_test_control_plane::cluster::{Backend, ClusterError};

use crate::stand_ins::{RUNS, StandIns};

fn choose(variables: &[(&str, &str)]) -> Result<Backend, ClusterError> {
    let variables: HashMap<&str, &str> = variables.iter().copied().collect();
    Backend::from_variables(|name| variables.get(name).map(OsString::from))
}

#[test]
fn empty_environment_chooses_the_embedded_backend() {
    for variables in [
        &[][..],
        &[("USE_EXISTING_CLUSTER", "false")],
        &[("USE_EXISTING_CLUSTER", ""), ("KUBEBUILDER_ASSETS", "")],
    ] {
        let backend = choose(variables).unwrap();
        assert_eq!(backend, Backend::Embedded, "{variables:?}");
        assert!(backend.is_embedded());
    }
}

#[test]
fn environment_sets_binaries_and_timeouts() {
    let programs = StandIns::new(RUNS, RUNS);
    let folder = programs.folder().to_str().unwrap();
    let assets = programs.assets().unwrap();
    assert_eq!(
        choose(&[("KUBEBUILDER_ASSETS", folder)]).unwrap(),
        Backend::Binaries(assets.clone())
    );
    let backend = choose(&[
        ("KUBEBUILDER_ASSETS", folder),
        ("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "2m"),
        ("KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT", "500ms"),
    ]);
    let assets = assets
        .start_timeout(Duration::from_secs(120))
        .stop_timeout(Duration::from_millis(500));
    assert_eq!(backend.unwrap(), Backend::Binaries(assets));
}

#[test]
fn existing_cluster_takes_precedence_over_binaries() {
    let backend = choose(&[
        ("USE_EXISTING_CLUSTER", "True"),
        ("KUBEBUILDER_ASSETS", "/nonexistent"),
    ]);
    assert_eq!(backend.unwrap(), Backend::Existing);
}

#[test]
fn invalid_variables_are_errors() {
    let programs = StandIns::new(RUNS, RUNS);
    let folder = programs.folder().to_str().unwrap();
    let error = choose(&[("USE_EXISTING_CLUSTER", "yes")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "USE_EXISTING_CLUSTER is \"yes\": it must be true or false"
    );
    let error = choose(&[
        ("KUBEBUILDER_ASSETS", folder),
        ("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "soon"),
    ]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT is \"soon\": it must be a number and a unit of ms, \
         s, m or h"
    );
}

/// Returns the error for a folder after a change to it.
fn message(change: impl FnOnce(&std::path::Path)) -> String {
    let programs = StandIns::new(RUNS, RUNS);
    change(programs.folder());
    let folder = programs.folder().to_str().unwrap();
    let error = choose(&[("KUBEBUILDER_ASSETS", folder)]).unwrap_err();
    let text = error.to_string();
    let Some(rest) = text.strip_prefix(folder) else {
        panic!("{text}");
    };
    rest.to_owned()
}

#[test]
fn unusable_binaries_are_errors() {
    assert_eq!(
        choose(&[("KUBEBUILDER_ASSETS", "/nonexistent")])
            .unwrap_err()
            .to_string(),
        "/nonexistent of KUBEBUILDER_ASSETS can't be used: there is no such folder"
    );
    let no_folder = message(|folder| {
        std::fs::remove_dir_all(folder).unwrap();
        std::fs::write(folder, "").unwrap();
    });
    assert_eq!(
        no_folder,
        " of KUBEBUILDER_ASSETS can't be used: it is not a folder"
    );
    for program in ["kube-apiserver", "etcd"] {
        let missing = message(|folder| std::fs::remove_file(folder.join(program)).unwrap());
        assert!(
            missing.starts_with(&format!(
                "/{program} of KUBEBUILDER_ASSETS can't be used: No such"
            )),
            "{missing}"
        );
        let plain = message(|folder| {
            let file = folder.join(program);
            std::fs::set_permissions(file, Permissions::from_mode(0o644)).unwrap();
        });
        assert_eq!(
            plain,
            format!("/{program} of KUBEBUILDER_ASSETS can't be used: it is not executable")
        );
        let a_folder = message(|folder| {
            std::fs::remove_file(folder.join(program)).unwrap();
            std::fs::create_dir(folder.join(program)).unwrap();
        });
        assert_eq!(
            a_folder,
            format!("/{program} of KUBEBUILDER_ASSETS can't be used: it is not a file")
        );
    }
}
