//! The program against the test control plane, as its user would run it.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::conditions::is_pod_running;
use kube::runtime::wait::await_condition;
use kube_test_control_plane::TestControlPlane;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::process::Command;

#[tokio::test]
async fn program_runs_sets_until_interrupted() {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let plane = TestControlPlane::builder().all_actors().listen(any_port);
    let plane = plane.try_start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    plane.write_kubeconfig(&kubeconfig).unwrap();
    let program = Command::new(env!("CARGO_BIN_EXE_embedder"))
        .env("KUBECONFIG", &kubeconfig)
        .kill_on_drop(true)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    let sets: Api<StatefulSet> = Api::default_namespaced(plane.client());
    let set = serde_json::from_value(set).unwrap();
    sets.create(&PostParams::default(), &set).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(plane.client());
    await_condition(pods, "web-1", is_pod_running())
        .await
        .unwrap();

    let id = Pid::from_raw(program.id().unwrap().try_into().unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let output = program.wait_with_output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

/// The program of the documentation is this one, and needs one dependency besides kube, tokio and
/// the crate that selects the Kubernetes version.
#[test]
fn program_matches_the_page_and_needs_four_dependencies() {
    let source = include_str!("../src/main.rs");
    let code = source.lines().filter(|line| !line.starts_with("//!"));
    let code = code.collect::<Vec<_>>().join("\n");
    let code = code.trim();
    assert!(code.lines().count() < 15, "{code}");
    let page = include_str!("../../../docs/embedding.md");
    let first = page.split("```").nth(1).unwrap();
    assert_eq!(first.strip_prefix("rust,no_run\n").unwrap().trim(), code);
    let readme = include_str!("../../../README.md");
    for line in code
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("let "))
    {
        assert!(readme.contains(line), "{line}");
    }

    let manifest = include_str!("../Cargo.toml");
    let (_, section) = manifest.split_once("\n[dependencies]\n").unwrap();
    let lines = section.lines().take_while(|line| !line.is_empty());
    let dependencies: Vec<&str> = lines
        .map(|line| line.split(['.', ' ']).next().unwrap())
        .collect();
    let expected = ["k8s-openapi", "kube", "statefulset-controller", "tokio"];
    assert_eq!(dependencies, expected);
}
