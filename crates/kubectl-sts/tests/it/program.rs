//! The program itself, over a port.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};
use statefulset_client::clock::{Clock as _, SystemClock};
use statefulset_client::rest::RestClient;
use statefulset_controller::StatefulSetController;
use tokio::task::JoinSet;

use crate::stage::{SET, SETS, web};

/// A kubeconfig that is removed at the end.
struct Kubeconfig(PathBuf);

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Kubeconfig {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Self(folder.join(format!("{name}-{}.yaml", std::process::id())))
    }

    /// Runs the program with this kubeconfig.
    async fn sts(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-sts"));
        command
            .arg("--kubeconfig")
            .arg(&self.0)
            .args(line.split_whitespace());
        let ended = tokio::task::spawn_blocking(move || command.output()).await;
        ended.expect("the task ends").expect("the program starts")
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is text")
}

#[tokio::test(flavor = "multi_thread")]
async fn program_answers_over_a_port() {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let plane = TestControlPlane::builder().starting_at(SystemClock.now());
    let plane = plane.listen(loopback).start().await;
    let admin = Kubeconfig::new("sts-admin");
    plane
        .write_kubeconfig(&admin.0)
        .expect("the kubeconfig is written");
    let answer = admin.sts("why -A").await;
    assert_eq!(text(&answer.stderr), "");
    assert_eq!(text(&answer.stdout), "every set is complete\n");
    assert!(answer.status.success());

    let missing = admin.sts("why web").await;
    let line =
        "error: StatefulSet web doesn't exist in namespace default; choose another with -n\n";
    assert_eq!(text(&missing.stderr), line);
    assert_eq!(missing.status.code(), Some(1));
    let context = admin.sts("why --context other").await;
    assert_eq!(
        text(&context.stderr).lines().count(),
        1,
        "{}",
        text(&context.stderr)
    );
    assert!(
        text(&context.stderr).contains("other"),
        "{}",
        text(&context.stderr)
    );

    let set = http::Request::post("/apis/apps/v1/namespaces/default/statefulsets")
        .header("content-type", "application/json")
        .body(web(1).to_string().into_bytes())
        .expect("the request is valid");
    let created = plane.client().request_text(set).await;
    created.expect("the set is created");
    let late = admin.sts("wait web --timeout=0").await;
    assert_eq!(late.status.code(), Some(3), "{late:?}");
    assert!(text(&late.stdout).contains("the time limit"), "{late:?}");

    let jane = Kubeconfig::new("sts-jane");
    let written = plane.write_kubeconfig_for(&Identity::user("jane"), &jane.0);
    written.expect("the kubeconfig is written");
    let refused = jane.sts("why -n db").await;
    let needed = "needs permission to list statefulsets in namespace db";
    assert!(
        text(&refused.stderr).contains(needed),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(refused.status.code(), Some(1));
    plane.stop().await;

    let stopped = admin.sts("why").await;
    assert_eq!(
        text(&stopped.stderr).lines().count(),
        1,
        "{}",
        text(&stopped.stderr)
    );
    assert_eq!(stopped.status.code(), Some(1));
}

/// Exit codes of the program in a cluster with a controller, in real time.
#[tokio::test(flavor = "multi_thread")]
async fn program_waits_plans_and_explains_over_a_port() {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let plane = TestControlPlane::builder().starting_at(SystemClock.now());
    let plane = plane.all_actors().listen(loopback).start().await;
    let account = Identity::service_account("kube-system", "statefulset-controller");
    let client = RestClient::new(plane.client_as(account));
    let controller = StatefulSetController::builder_with_clients(client.clone(), client).build();
    let controller = controller.expect("no election is configured");
    let mut controllers = JoinSet::new();
    controllers.spawn(controller.run(std::future::pending()));
    let admin = Kubeconfig::new("sts-cluster");
    let written = plane.write_kubeconfig(&admin.0);
    written.expect("the kubeconfig is written");
    let send = |method: &str, path: &str, kind: &str, body: &Value| {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{path}?propagationPolicy=Background"))
            .header("content-type", kind)
            .body(body.to_string().into_bytes())
            .expect("the request is valid");
        let client = plane.client();
        async move {
            let answer = client.request_text(request).await;
            answer.unwrap_or_else(|error| panic!("{error}"))
        }
    };
    let (json, merge) = ("application/json", "application/merge-patch+json");
    send("POST", SETS, json, &web(2)).await;
    let complete = admin.sts("wait web --timeout=60s").await;
    assert_eq!(complete.status.code(), Some(0), "{complete:?}");

    let claim = "/api/v1/namespaces/default/persistentvolumeclaims/data-web-1";
    send("DELETE", claim, json, &json!({})).await;
    let why = admin.sts("why web").await;
    assert!(
        text(&why.stdout).contains("claim data-web-1 is being deleted"),
        "{why:?}"
    );
    let plan = admin.sts("plan web --image app=app:2").await;
    assert_eq!(plan.status.code(), Some(2), "{plan:?}");
    assert!(
        text(&plan.stdout).contains("DATA LOSS: claim data-web-1 "),
        "{plan:?}"
    );

    let strategy = json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}});
    send("PATCH", SET, merge, &strategy).await;
    let annotations = json!({"example.com/restarted": "now"});
    let template = json!({"metadata": {"annotations": annotations}});
    send(
        "PATCH",
        SET,
        merge,
        &json!({"spec": {"template": template}}),
    )
    .await;
    let stuck = admin.sts("wait web --timeout=60s").await;
    assert_eq!(stuck.status.code(), Some(2), "{stuck:?}");
    assert!(
        text(&stuck.stdout).contains("does not resolve on-delete"),
        "{stuck:?}"
    );
    let available = admin.sts("wait web --for=available --timeout=60s").await;
    assert_eq!(available.status.code(), Some(0), "{available:?}");
    let upgrade = admin.sts("preflight --to 1.37").await;
    assert_eq!(upgrade.status.code(), Some(2), "{upgrade:?}");
    assert!(
        text(&upgrade.stdout).contains("default/web: updates under OnDelete"),
        "{upgrade:?}"
    );
    controllers.shutdown().await;
    plane.stop().await;
}

#[tokio::test]
async fn usage_error_is_not_a_dangerous_plan() {
    let nowhere = Kubeconfig::new("sts-usage");
    for line in ["plan", "plan web --replicas many", "explain web"] {
        let answer = nowhere.sts(line).await;
        assert_eq!(answer.status.code(), Some(1), "{line}");
        assert!(text(&answer.stderr).starts_with("error: "), "{line}");
    }
    let help = nowhere.sts("plan --help").await;
    assert!(help.status.success());
    assert!(text(&help.stdout).contains("The exit code is 2"));
}

#[tokio::test]
async fn missing_kubeconfig_is_named() {
    let nowhere = Kubeconfig::new("sts-nowhere");
    let answer = nowhere.sts("why").await;
    let line = text(&answer.stderr);
    let start = format!("error: read the kubeconfig {}: ", nowhere.0.display());
    assert!(line.starts_with(&start), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
}
