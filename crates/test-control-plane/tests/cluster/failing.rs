//! Binaries that fail to start: one clear error, the logs kept, and no process left.

use std::time::Duration;

use kube_test_control_plane::cluster::{Backend, ClusterError, TestCluster};

use crate::stand_ins::{RUNS, StandIns, take_log};

/// A timeout that only a hanging script reaches, even on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Returns the error of starting these programs.
async fn failure(programs: &StandIns, timeout: Duration) -> ClusterError {
    let assets = programs.assets().unwrap().start_timeout(timeout);
    let started = TestCluster::builder()
        .kube_apiserver_flag("--v=7")
        .start_on(Backend::Binaries(assets))
        .await;
    assert!(programs.are_gone());
    started.unwrap_err()
}

#[tokio::test]
async fn early_exit_is_reported_with_the_last_log_line() {
    let dies = "echo starting\necho 'error: no such flag' >&2\necho\nexit 3";
    for (program, programs) in [
        ("kube-apiserver", StandIns::new(dies, RUNS)),
        ("etcd", StandIns::new(RUNS, dies)),
    ] {
        let error = failure(&programs, LONG).await;
        let ClusterError::Exited { log, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(
            error.to_string(),
            format!(
                "{program} ended before the API server was ready (exit status: 3); last log line: \
                 \"error: no such flag\"; the log is kept in {}",
                log.display()
            )
        );
        assert_eq!(take_log(log), "starting\nerror: no such flag\n\n");
        assert_eq!(programs.pids(program).len(), 1);
    }
}

#[tokio::test]
async fn unready_server_times_out() {
    let programs = StandIns::new(&format!("echo waiting\n{RUNS}"), RUNS);
    let error = failure(&programs, Duration::from_secs(2)).await;
    let ClusterError::NotReady { log, source, .. } = &error else {
        panic!("{error}");
    };
    let text = error.to_string();
    assert!(
        text.starts_with("kube-apiserver was not ready within 2s: "),
        "{text}"
    );
    assert!(source.to_string().contains("Connect"), "{source}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(take_log(log), "waiting\n");
    assert_eq!(programs.pids("etcd").len(), 1);
}

#[tokio::test]
async fn error_names_a_program_that_cannot_run() {
    let programs = StandIns::new(RUNS, RUNS);
    std::fs::write(programs.folder().join("kube-apiserver"), "#!/nonexistent\n").unwrap();
    let error = failure(&programs, LONG).await;
    assert!(matches!(error, ClusterError::Binary { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("kube-apiserver of KUBEBUILDER_ASSETS can't be used"),
        "{text}"
    );
}

#[tokio::test]
async fn occupied_port_is_replaced() {
    let dies = "echo 'bind: address already in use'\nexit 1";
    let programs = StandIns::new(dies, RUNS);
    let error = failure(&programs, LONG).await;
    let ClusterError::Exited { log, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(programs.pids("kube-apiserver").len(), 3);
    take_log(log);
}

#[tokio::test]
async fn programs_get_flags_to_reach_each_other() {
    // The first program to end stops the other one, which may not have started yet.
    let ends = "until [ -s \"${0%/*}/etcd.flags\" ]; do sleep 0.01; done\n\
                for f in \"$@\"; do echo \"$f\"; done\nexit 1";
    let programs = StandIns::new(ends, RUNS);
    let error = failure(&programs, LONG).await;
    let ClusterError::Exited { log, last, .. } = &error else {
        panic!("{error}");
    };
    // The test's flags come last and win.
    assert_eq!(last, "--v=7");
    assert_eq!(
        programs.flag("kube-apiserver", "etcd-servers").unwrap(),
        programs.flag("etcd", "listen-client-urls").unwrap()
    );
    for flag in ["tls-cert-file", "tls-private-key-file", "client-ca-file"] {
        let path = programs.flag("kube-apiserver", flag).unwrap();
        assert!(!std::path::Path::new(&path).exists(), "{path} still exists");
    }
    let port = programs.flag("kube-apiserver", "secure-port").unwrap();
    assert_eq!(
        programs
            .flag("kube-apiserver", "service-account-issuer")
            .unwrap(),
        format!("https://127.0.0.1:{port}/")
    );
    take_log(log);
}
