//! Tests of startup failures of the controller: permanent ones exit with one line and a non-zero
//! code, others are logged once while the controller waits.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::harness::{
    Finished, History, Kind, Plane, Process, Programs, Signal, controller_arguments, programs, set,
};

/// Runs the controller to its end, outside of any cluster.
fn run(programs: &Programs, arguments: &[String]) -> Finished {
    let mut command = Command::new(&programs.controller);
    command
        .args(arguments)
        .env_remove("KUBERNETES_SERVICE_HOST");
    Process::start("controller", &mut command).wait()
}

/// Checks that it fails, with the reason in its last line, the only one outside the log.
fn assert_rejected(programs: &Programs, arguments: &[String], parts: &[&str]) {
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

fn assert_rejected_immediately(programs: &Programs, arguments: &[&str], expected: &str) {
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
fn unknown_flag_is_rejected() {
    assert_rejected_immediately(
        &programs(),
        &["--leader-elect=false", "--no-such-flag"],
        "unknown flag: --no-such-flag; see --help",
    );
}

#[test]
fn missing_kubeconfig_is_reported() {
    let arguments = controller_arguments(Path::new("/no/such/kubeconfig"));
    assert_rejected(
        &programs(),
        &arguments,
        &["/no/such/kubeconfig", "check --kubeconfig"],
    );
}

/// Starts the controller with a kubeconfig that doesn't work yet, and waits for the line that says
/// so.
fn start_refused(plane: &Plane, kubeconfig: &Path, further: &[&str], expected: &[&str]) -> Process {
    let mut controller = plane.controller_of(kubeconfig, further);
    let line = controller.logged("trying again");
    for part in expected {
        assert!(line.contains(part), "{line} lacks {part:?}");
    }
    controller
}

/// Ends a waiting controller, and checks that it logged its obstacle once.
fn end_refused(controller: Process) {
    controller.signal(Signal::TERM);
    let finished = controller.wait();
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let logged = finished.stderr.iter();
    let logged: Vec<_> = logged.filter(|line| line.starts_with(['W', 'E'])).collect();
    assert_eq!(logged.len(), 1, "{logged:#?}");
}

#[test]
fn bad_credentials_and_missing_permissions_are_distinguished() {
    let programs = &programs();
    let plane = Plane::start(programs, "0s");
    let wrong_token = plane.kubeconfig_of(&json!({"token": "wrong"}));
    let expected = ["API server rejects the credentials", "check the token"];
    end_refused(start_refused(&plane, &wrong_token, &[], &expected));
    // Without credentials the server responds, but allows nothing.
    let anonymous = plane.kubeconfig_of(&json!({}));
    let expected = [
        "list statefulsets.apps, pods, persistentvolumeclaims, controllerrevisions.apps in all \
         namespaces",
        "system:anonymous",
        "bind the ClusterRole system:controller:statefulset-controller",
    ];
    end_refused(start_refused(&plane, &anonymous, &[], &expected));
    let account = plane.kubeconfig_of_account("kube-system", "statefulset-controller");
    let flag = ["--use-service-account-credentials"];
    let expected = [
        "get serviceaccounts, create serviceaccounts/token",
        "ClusterRole system:kube-controller-manager",
    ];
    end_refused(start_refused(&plane, &account, &flag, &expected));
    let other_authority = plane.kubeconfig_with(|kubeconfig| {
        let cluster = kubeconfig["clusters"][0]["cluster"].as_object_mut();
        cluster.unwrap().remove("certificate-authority-data");
    });
    let expected = ["no secure connection to the API server", "UnknownIssuer"];
    end_refused(start_refused(&plane, &other_authority, &[], &expected));
}

#[test]
fn controller_starts_once_its_role_is_bound() {
    let plane = Plane::start(&programs(), "20ms");
    plane.create_account("default", "late");
    let kubeconfig = plane.kubeconfig_of_account("default", "late");
    let expected = ["permissions are missing", "list statefulsets.apps, pods"];
    let mut controller = start_refused(&plane, &kubeconfig, &[], &expected);
    let mut history = History::begin(&plane.api);
    plane.api.create(Kind::Set, &set("web", 1));
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "late"},
        "roleRef": {
            "apiGroup": group, "kind": "ClusterRole",
            "name": "system:controller:statefulset-controller",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "late", "namespace": "default"}],
    });
    plane.api.post(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        &binding,
    );
    controller.logged("the API server grants the required access");
    history.until("the set to be complete", |history| {
        history.is_complete("web")
    });
    end_refused(controller);
}
