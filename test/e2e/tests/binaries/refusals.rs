//! How the controller binary says that it can't run: one line, and an exit code other than 0.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::harness::{Finished, Plane, Process, Programs, controller_arguments, programs};

/// Runs the controller to its end, outside of any cluster.
fn run(programs: &Programs, arguments: &[String]) -> Finished {
    let mut command = Command::new(&programs.controller);
    command
        .args(arguments)
        .env_remove("KUBERNETES_SERVICE_HOST");
    Process::start("controller", &mut command).wait()
}

/// Checks that it fails and says why in its last line, the only one that is no log line.
fn assert_refused(programs: &Programs, arguments: &[String], parts: &[&str]) {
    let Finished {
        code,
        stdout,
        stderr,
    } = run(programs, arguments);
    assert_eq!((code, stdout.len()), (Some(1), 0), "{stderr:#?}");
    let errors: Vec<&String> = stderr
        .iter()
        .filter(|line| line.starts_with("Error: "))
        .collect();
    assert_eq!(errors, [stderr.last().unwrap()], "{stderr:#?}");
    for part in parts {
        assert!(errors[0].contains(part), "{} lacks {part:?}", errors[0]);
    }
}

fn assert_refused_at_once(programs: &Programs, arguments: &[&str], expected: &str) {
    let arguments: Vec<String> = arguments.iter().copied().map(str::to_owned).collect();
    let Finished {
        code,
        stdout,
        stderr,
    } = run(programs, &arguments);
    assert_eq!((code, stdout.len()), (Some(1), 0));
    assert_eq!(stderr, [format!("Error: {expected}")]);
}

#[test]
fn an_unknown_flag_is_refused() {
    assert_refused_at_once(
        &programs(),
        &["--leader-elect=false", "--no-such-flag"],
        "unknown flag: --no-such-flag; see --help",
    );
}

#[test]
fn a_missing_kubeconfig_is_named() {
    let arguments = controller_arguments(Path::new("/no/such/kubeconfig"));
    assert_refused(
        &programs(),
        &arguments,
        &["/no/such/kubeconfig", "check --kubeconfig"],
    );
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("https://{}", listener.local_addr().unwrap());
    drop(listener);
    let arguments = [
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        format!("--master={server}"),
    ];
    assert_refused(
        &programs(),
        &arguments,
        &[&format!("cannot reach the API server at {server}")],
    );
}

#[test]
fn wrong_credentials_and_missing_rights_are_told_apart() {
    let programs = &programs();
    let plane = Plane::start(programs, "0s");
    let wrong_token = plane.kubeconfig_of(&json!({"token": "wrong"}));
    assert_refused(
        programs,
        &controller_arguments(&wrong_token),
        &[
            "does not accept the credentials",
            "check the token or client certificate",
        ],
    );
    // Without credentials the server still answers, but allows nothing.
    let nobody = plane.kubeconfig_of(&json!({}));
    assert_refused(
        programs,
        &controller_arguments(&nobody),
        &[
            "not allowed to list statefulsets.apps, pods, persistentvolumeclaims, \
             controllerrevisions.apps in all namespaces",
            "User \"system:anonymous\" cannot list resource",
            "bind the ClusterRole system:controller:statefulset-controller",
        ],
    );
    let account = plane.kubeconfig_of_account("kube-system", "statefulset-controller");
    let mut arguments = controller_arguments(&account).to_vec();
    arguments.push("--use-service-account-credentials".to_owned());
    assert_refused(
        programs,
        &arguments,
        &[
            "not allowed to get serviceaccounts, create serviceaccounts/token",
            "bind the ClusterRole system:kube-controller-manager",
        ],
    );
    let other_authority = plane.kubeconfig_with(|kubeconfig| {
        let cluster = kubeconfig["clusters"][0]["cluster"].as_object_mut();
        cluster.unwrap().remove("certificate-authority-data");
    });
    assert_refused(
        programs,
        &controller_arguments(&other_authority),
        &[
            "cannot reach the API server",
            "check the address and the certificates",
        ],
    );
}
