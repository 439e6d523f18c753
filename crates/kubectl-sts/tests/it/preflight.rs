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
