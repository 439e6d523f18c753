//! The checklist before a switch.

use http::{Request, Response};
use kube::client::Body;
use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

use crate::stage::{SETS, Stage, web};

/// Runs the check and returns it by the names of its points.
async fn checks(stage: &Stage) -> Value {
    let text = stage.sts("preflight -o json").await;
    let text = text.trim_end_matches("exit code 2\n");
    let answer: Value = serde_json::from_str(text).expect("the answer is JSON");
    let points = answer["checks"].as_array().into_iter().flatten();
    let points = points.map(|point| {
        let name = point["check"].as_str().expect("a point has a name");
        (name.to_owned(), point.clone())
    });
    Value::Object(points.collect())
}

#[tokio::test(start_paused = true)]
async fn settled_sets_of_the_controller_would_not_change() {
    let stage = Stage::start().await;
    stage.create(SETS, &web(3)).await;
    stage.pass(60).await;
    let checks = checks(&stage).await;
    assert_eq!(checks["server"]["verdict"], "ok", "{checks}");
    assert_eq!(checks["sets"]["verdict"], "ok", "{checks}");
    assert_eq!(
        checks["sets"]["text"],
        "the controller would change none of 1 set"
    );
    let memory = "about 22 MiB for 1 set and 3 pods; the shipped limit is 1024 MiB";
    assert_eq!(checks["memory"]["text"], memory);
}

#[tokio::test(start_paused = true)]
async fn changed_template_behind_a_settled_status_stops_the_switch() {
    let mut stage = Stage::start().await;
    stage.create(SETS, &web(2)).await;
    stage.pass(60).await;
    stage.stop_controller();
    let path = "/api/v1/namespaces/default/pods/web-1";
    let labels = json!({"controller-revision-hash": "web-0"});
    stage
        .patch(path, &json!({"metadata": {"labels": labels}}))
        .await;
    let text = stage.sts("preflight").await;
    let line = "stop    sets          the controller would create or delete a pod in 1 of 1 set";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("default/web: delete pods web-1"), "{text}");
    assert!(
        text.ends_with("1 check blocks the switch\nexit code 2\n"),
        "{text}"
    );
}

/// The cluster's client, with the shipped flow schema, a kind that the embedded server lacks.
fn with_flow_schema(stage: &Stage) -> kube::Client {
    let client = stage.plane.client();
    let service = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            if !request.uri().path().contains("/flowschemas/") {
                return Ok::<_, BoxError>(client.send(request).await?);
            }
            let schema = json!({"spec": {"priorityLevelConfiguration": {"name": "workload-high"}}});
            Ok(Response::new(Body::from(schema.to_string().into_bytes())))
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn cluster_without_open_points_is_ready() {
    let stage = Stage::start().await;
    stage.create(SETS, &web(2)).await;
    stage.pass(60).await;
    let pod = json!({
        "metadata": {"name": "kcm", "labels": {"component": "kube-controller-manager"}},
        "spec": {"containers": [{
            "name": "kcm", "image": "kcm:1",
            "args": ["--controllers=*,bootstrapsigner,-statefulset-controller"],
        }]},
    });
    stage
        .create("/api/v1/namespaces/kube-system/pods", &pod)
        .await;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "statefulset-controller-manager"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole",
            "name": "system:controller:statefulset-controller"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "kube-system",
            "name": "statefulset-controller-manager"}],
    });
    let bindings = format!("/apis/{group}/v1/clusterrolebindings");
    stage.create(&bindings, &binding).await;
    let text = stage.sts_as(with_flow_schema(&stage), "preflight").await;
    assert!(text.ends_with("the cluster is ready to switch\n"), "{text}");
    let open = text.lines().filter(|line| !line.starts_with("ok "));
    assert_eq!(open.count(), 1, "{text}");
}

#[tokio::test(start_paused = true)]
async fn missing_permissions_leave_points_open() {
    let stage = Stage::start().await;
    let jane = stage.plane.client_as(Identity::user("jane"));
    let text = stage.sts_as(jane, "preflight").await;
    let unread = "unread  sets          list statefulsets: needs permission to list statefulsets: ";
    assert!(text.contains(unread), "{text}");
    assert!(text.ends_with("exit code 2\n"), "{text}");
    let writes = stage
        .plane
        .server()
        .audit()
        .matching(|it| it.is_write() && it.user == "jane");
    assert!(writes.is_empty(), "{writes:?}");
}

/// The cluster's client, whose server has this version.
fn with_version(stage: &Stage, version: &str) -> kube::Client {
    let client = stage.plane.client();
    let minor = version.split('.').nth(1).unwrap_or_default().to_owned();
    let version = json!({"major": "1", "minor": minor, "gitVersion": version});
    let service = service_fn(move |request: Request<Body>| {
        let (client, version) = (client.clone(), version.clone());
        async move {
            if request.uri().path() != "/version" {
                return Ok::<_, BoxError>(client.send(request).await?);
            }
            Ok(Response::new(Body::from(version.to_string().into_bytes())))
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn early_patches_of_1_34_restart_sets_of_1_33() {
    let stage = Stage::with_controller_of_1_33().await;
    stage.create(SETS, &web(3)).await;
    stage.pass(60).await;
    let ask = |to: &str| {
        let (client, line) = (
            with_version(&stage, "v1.33.5"),
            format!("preflight --to {to}"),
        );
        let stage = &stage;
        async move { stage.sts_as(client, &line).await }
    };
    let restarts = ask("1.34.1").await;
    let line = "stop    restarts      the upgrade would restart pods of 1 of 1 set";
    assert!(restarts.contains(line), "{restarts}");
    assert!(
        restarts.contains("default/web: v1.34.1 would delete pod web-2"),
        "{restarts}"
    );
    let end = "1 check blocks the upgrade\nexit code 2\n";
    assert!(restarts.ends_with(end), "{restarts}");

    let careful = ask("1.34").await;
    let line = "todo    restarts      the upgrade would restart no pod of 1 set, but v1.34.0 and \
                v1.34.1 would restart those of 1: use v1.34.2 or later";
    assert!(careful.contains(line), "{careful}");
    let fine = ask("v1.34.2").await;
    assert!(
        fine.contains("ok      restarts      the upgrade would restart no pod"),
        "{fine}"
    );
    let steps = ask("1.36").await;
    let line = "upgrade one minor version at a time: v1.34, v1.35, v1.36";
    assert!(steps.contains(line), "{steps}");
    assert!(
        steps.contains("event messages begin with \"Create Pod\""),
        "{steps}"
    );
}

/// A cluster with an ordinary set, one of the policy `Parallel` and one of the strategy `OnDelete`.
pub(crate) async fn three_sets() -> Stage {
    let stage = Stage::start().await;
    for (name, members) in [
        ("web", json!({})),
        ("wide", json!({"podManagementPolicy": "Parallel"})),
        ("slow", json!({"updateStrategy": {"type": "OnDelete"}})),
    ] {
        let mut set = web(1);
        set["metadata"]["name"] = json!(name);
        set["spec"]["selector"]["matchLabels"] = json!({"app": name});
        set["spec"]["template"]["metadata"]["labels"] = json!({"app": name});
        for (member, value) in members.as_object().expect("members") {
            set["spec"][member] = value.clone();
        }
        stage.create(SETS, &set).await;
    }
    stage.pass(60).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn upgrade_to_1_37_changes_strategies_and_policies() {
    let stage = three_sets().await;
    let text = stage.sts("preflight --to 1.37").await;
    assert!(
        text.contains("ok      versions      v1.36.2 to v1.37"),
        "{text}"
    );
    assert!(
        text.contains("ok      restarts      the upgrade would restart no pod of 3 sets"),
        "{text}"
    );
    assert!(
        text.contains("todo    behaviour     2 of 3 sets would behave otherwise"),
        "{text}"
    );
    assert!(
        text.contains("default/slow: updates under OnDelete complete"),
        "{text}"
    );
    assert!(
        text.contains("default/wide: updates of this Parallel set stop"),
        "{text}"
    );
    assert!(!text.contains("default/web:"), "{text}");
    assert!(
        text.ends_with("1 open point before the upgrade\nexit code 2\n"),
        "{text}"
    );
    // A flag keeps the gate, and with it the budget.
    let pod = json!({
        "metadata": {"name": "kcm", "labels": {"component": "kube-controller-manager"}},
        "spec": {"containers": [{"name": "kcm", "image": "kcm:1",
            "args": ["--feature-gates=MaxUnavailableStatefulSet=false"]}]},
    });
    let pods = "/api/v1/namespaces/kube-system/pods";
    stage.create(pods, &pod).await;
    let text = stage.sts("preflight --to 1.37").await;
    assert!(!text.contains("default/wide"), "{text}");
}

/// A rollout that waits for a broken pod goes on in the new version.
#[tokio::test(start_paused = true)]
async fn unsettled_sets_are_compared_by_their_next_step() {
    let stage = Stage::start().await;
    let mut set = web(3);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    let annotation = json!({"kubelet.test-control-plane/crash": "{}"});
    set["spec"]["template"]["metadata"]["annotations"] = annotation;
    stage.create(SETS, &set).await;
    stage.pass(60).await;
    let annotation = json!({"kubelet.test-control-plane/crash": null,
        "kubelet.test-control-plane/start-delay": "300s"});
    let template = json!({"metadata": {"annotations": annotation}});
    stage
        .patch(
            "/apis/apps/v1/namespaces/default/statefulsets/web",
            &json!({"spec": {"template": template}}),
        )
        .await;
    stage.pass(30).await;
    let text = stage.sts("preflight --to 1.37").await;
    assert!(
        text.contains("no pod of 1 set; unsettled sets: 1"),
        "{text}"
    );
    assert!(
        text.contains("default/web: v1.37 would delete pod web-"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_and_older_versions_are_rejected() {
    let stage = Stage::start().await;
    let older = stage.sts("preflight --to 1.35").await;
    let line = "v1.35 is older than the server's v1.36.2: only upgrades are checked";
    assert!(older.contains(line), "{older}");
    let newer = stage.sts("preflight --to 1.40").await;
    assert!(
        newer.contains("the behaviour of v1.40 is unknown"),
        "{newer}"
    );
    let partly = stage.sts("preflight --to 1.38").await;
    assert!(
        partly.contains("only changes announced for v1.38 are known so far"),
        "{partly}"
    );
}
