//! Binaries that start, with this crate's program as kube-apiserver.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::actors::ActorsConfig;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::cluster::{Backend, ClusterError, TestCluster};
use serde_json::json;
use tokio::task::JoinSet;

use crate::actors::{is_ready, pod, send, until};
use crate::existing::{code, config};
use crate::stand_ins::{RUNS, StandIns, take_log};

/// Passes on the kube-apiserver flags that the program supports.
fn kube_apiserver() -> String {
    let program = env!("CARGO_BIN_EXE_kube-test-control-plane");
    format!(
        "for flag in \"$@\"; do\n\
         shift\n\
         case $flag in\n\
         --secure-port=*|--bind-address=*|--tls-*|--client-ca-file=*|--authorization-mode=*)\n\
         set -- \"$@\" \"$flag\";;\n\
         esac\n\
         done\n\
         echo up\n\
         exec {program} --actors '' \"$@\""
    )
}

async fn start(programs: &StandIns, stop_timeout: Duration) -> TestCluster {
    let assets = programs.assets().unwrap().stop_timeout(stop_timeout);
    TestCluster::builder()
        .actors(ActorsConfig::all())
        .start_on(Backend::Binaries(assets))
        .await
        .unwrap()
}

const LONG: Duration = Duration::from_secs(60);

/// Returns the folder of the logs.
fn logs(cluster: &TestCluster) -> std::path::PathBuf {
    let TestCluster::Real(real) = cluster else {
        panic!("the cluster is not real");
    };
    real.logs().unwrap().to_owned()
}

#[tokio::test]
async fn binaries_behave_like_the_embedded_control_plane() {
    let programs = StandIns::new(&kube_apiserver(), RUNS);
    let cluster = start(&programs, LONG).await;
    let client = cluster.client();
    assert_eq!(code(&client).await, 200);
    let written = config(&cluster.kubeconfig().unwrap()).await;
    assert_eq!(code(&kube::Client::try_from(written).unwrap()).await, 200);
    let user = Identity::service_account("default", "operator");
    assert_eq!(code(&cluster.client_as(&user).unwrap()).await, 403);
    let port = programs.flag("kube-apiserver", "secure-port").unwrap();
    assert_eq!(cluster.url(), Some(format!("https://127.0.0.1:{port}")));

    // Here all namespaces belong to the test.
    let pods = "/api/v1/namespaces/default/pods";
    send(&client, Method::POST, pods, &pod("web")).await;
    until(&client, &format!("{pods}/web"), is_ready).await;
    let owned = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "owned",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "another"},
            ],
        },
    });
    let maps = "/api/v1/namespaces/default/configmaps";
    send(&client, Method::POST, maps, &owned).await;
    until(&client, &format!("{maps}/owned"), |map| map.is_none()).await;

    let refused = cluster.embedded().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "faults, audit log, clock and store need the embedded control plane, but a real \
         kube-apiserver was chosen: unset KUBEBUILDER_ASSETS to run this"
    );
    let logs = logs(&cluster);
    cluster.stop().await.unwrap();
    assert!(programs.are_gone());
    assert!(!logs.exists());
}

#[tokio::test]
async fn binaries_end_with_the_last_handle() {
    let programs = StandIns::new(&kube_apiserver(), RUNS);
    let cluster = start(&programs, LONG).await;
    let logs = logs(&cluster);
    assert!(!programs.are_gone());
    drop(cluster);
    assert!(programs.are_gone());
    assert!(!logs.exists());
}

#[tokio::test]
async fn hanging_program_is_killed_and_reported() {
    let deaf = "trap '' TERM\necho deaf\nwhile :; do sleep 0.05; done";
    let programs = StandIns::new(&kube_apiserver(), deaf);
    let cluster = start(&programs, Duration::from_millis(500)).await;
    let error = cluster.stop().await.unwrap_err();
    let ClusterError::Killed { log, .. } = &error else {
        panic!("{error}");
    };
    let text = error.to_string();
    assert!(text.starts_with("etcd did not end within 500ms"), "{text}");
    assert!(programs.are_gone());
    assert_eq!(take_log(log), "deaf\n");
}

#[tokio::test]
async fn failing_test_keeps_the_logs() {
    let programs = StandIns::new(&kube_apiserver(), RUNS);
    let cluster = start(&programs, LONG).await;
    let log = logs(&cluster).join("kube-apiserver.log");
    let mut failing = JoinSet::new();
    failing.spawn(async move {
        let _cluster = cluster;
        panic!("the test fails");
    });
    let ended: Result<(), _> = failing.join_next().await.unwrap();
    assert!(ended.unwrap_err().is_panic());
    assert!(programs.are_gone());
    assert!(take_log(&log).starts_with("up\nready https://127.0.0.1:"));
}
