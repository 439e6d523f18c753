//! Updates of running pods, by the whole controller on nodes that carry resizes out, put them off, or
//! refuse them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use integration::{NodeCluster, manifests};
use kube_test_control_plane::actors::PodBehaviour;
use serde_json::{Value, json};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::resource::{PODS, Resource, STATEFUL_SETS};

const TICK: Duration = Duration::from_millis(20);

/// Label of a pod in flight.
const MARK: &str = "statefulset-controller-manager/in-place-update";

const fn rbac(plural: &'static str, kind: &'static str) -> Resource {
    Resource {
        group: "rbac.authorization.k8s.io",
        version: "v1",
        plural,
        kind,
    }
}

fn gates() -> FeatureGates {
    FeatureGates::default().with_opt_ins()
}

/// Nodes that take two seconds for a resize.
fn nodes() -> PodBehaviour {
    PodBehaviour::default().resize_delay(Duration::from_secs(2))
}

/// Starts a cluster with a set of three settled pods.
async fn start(may_resize: bool) -> NodeCluster {
    let mut cluster = NodeCluster::start_without_controller(nodes()).await;
    if may_resize {
        permit(&cluster).await;
    }
    cluster.start_controller_with(gates());
    let mut set = manifests::web(3);
    set["metadata"]["annotations"] = json!({
        "statefulset-controller-manager/in-place": "resources",
        "statefulset-controller-manager/in-place-timeout": "30s",
    });
    set["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "100m"}});
    cluster.create(&STATEFUL_SETS, &set).await;
    cluster.settle().await;
    cluster
}

/// Lets the controller resize pods, which its default role doesn't.
async fn permit(cluster: &NodeCluster) {
    let rule = json!({"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "resizer"}, "rules": [rule],
    });
    cluster.create(&rbac("roles", "Role"), &role).await;
    let account = json!({
        "kind": "ServiceAccount", "namespace": "kube-system", "name": "statefulset-controller",
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "resizer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "resizer"},
        "subjects": [account],
    });
    let bindings = rbac("rolebindings", "RoleBinding");
    cluster.create(&bindings, &binding).await;
}

/// Changes the cores and a label of the template.
async fn resize(cluster: &NodeCluster) {
    let mut template = manifests::web(3)["spec"]["template"].take();
    template["metadata"]["labels"]["tier"] = json!("b");
    template["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "200m"}});
    let patch = json!({"spec": {"template": template}});
    cluster.patch(&STATEFUL_SETS, "web", &patch).await;
}

/// Says how the node of a pod treats a resize.
async fn treat(cluster: &NodeCluster, pod: &str, how: &str) {
    let annotations = json!({"kubelet.test-control-plane/resize": how});
    let patch = json!({"metadata": {"annotations": annotations}});
    cluster.patch(&PODS, pod, &patch).await;
}

/// Checks that every pod is what the new template says, for its spec, its node and its labels.
async fn assert_updated(cluster: &NodeCluster, case: &str) {
    let revisions = cluster.revisions().await;
    let update = &revisions.last().unwrap()["metadata"]["name"];
    let pods = cluster.list(&PODS).await;
    assert_eq!(pods.len(), 3, "{case}");
    for pod in pods {
        let cpu = |container: &Value| container["resources"]["requests"]["cpu"].clone();
        assert_eq!(
            cpu(&pod["spec"]["containers"][0]),
            "200m",
            "{case}: {pod:#}"
        );
        let status = &pod["status"]["containerStatuses"][0];
        assert_eq!(cpu(status), "200m", "{case}: {pod:#}");
        let labels = &pod["metadata"]["labels"];
        assert_eq!(labels["tier"], "b", "{case}");
        assert_eq!(labels["controller-revision-hash"], *update, "{case}");
        assert_eq!(labels.get(MARK), None, "{case}");
    }
    let status = cluster.status("web").await;
    assert_eq!(status["updatedReplicas"], 3, "{case}");
    assert_eq!(status["currentRevision"], *update, "{case}");
}

/// Returns the pods whose uid isn't among these.
async fn replaced(cluster: &NodeCluster, before: &[(String, String)]) -> Vec<String> {
    let now = cluster.pod_uids().await;
    let other = now.into_iter().filter(|pod| !before.contains(pod));
    other.map(|(name, _)| name).collect()
}

/// Waits until a pod is in flight.
async fn until_in_flight(cluster: &NodeCluster) {
    for _ in 0..1_000 {
        let pods = cluster.list(&PODS).await;
        let mut labels = pods.iter().map(|pod| &pod["metadata"]["labels"]);
        if labels.any(|labels| labels.get(MARK).is_some()) {
            return;
        }
        tokio::time::sleep(TICK).await;
    }
    panic!("no pod is in flight");
}

#[tokio::test(start_paused = true)]
async fn all_pods_are_resized_and_none_restarts() {
    integration::embedded_only!("delays resizes");
    let cluster = start(true).await;
    let before = cluster.pod_uids().await;
    resize(&cluster).await;
    cluster.settle().await;
    assert_updated(&cluster, "resized").await;
    assert_eq!(replaced(&cluster, &before).await, [""; 0]);
    for pod in cluster.list(&PODS).await {
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    }
}

#[tokio::test(start_paused = true)]
async fn controller_killed_after_any_write_goes_on() {
    integration::embedded_only!("delays resizes");
    // Three writes for each of the three pods.
    for writes in 1..=9 {
        let mut cluster = start(true).await;
        let before = cluster.pod_uids().await;
        let begin = cluster.writes().len();
        resize(&cluster).await;
        let of_pods = |cluster: &NodeCluster| {
            let writes = cluster.writes();
            let later = writes.iter().skip(begin);
            let is_ours = |subresource: &str| ["", "resize"].contains(&subresource);
            let of_pods = later.filter(|it| it.resource == "pods" && is_ours(&it.subresource));
            of_pods.count()
        };
        let mut waited = 0;
        while of_pods(&cluster) < writes {
            assert!(waited < 60_000, "the update does not advance");
            waited += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cluster.kill_controller().await;
        cluster.start_controller_with(gates());
        cluster.settle().await;
        let case = format!("killed after {writes} writes");
        assert_updated(&cluster, &case).await;
        assert_eq!(replaced(&cluster, &before).await, [""; 0], "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn pod_whose_node_refuses_is_replaced() {
    integration::embedded_only!("delays resizes");
    for how in ["infeasible", "deferred"] {
        let cluster = start(true).await;
        let before = cluster.pod_uids().await;
        treat(&cluster, "web-1", how).await;
        resize(&cluster).await;
        tokio::time::sleep(Duration::from_secs(120)).await;
        cluster.settle().await;
        assert_updated(&cluster, how).await;
        assert_eq!(replaced(&cluster, &before).await, ["web-1"], "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn controller_without_the_right_replaces_every_pod() {
    integration::embedded_only!("delays resizes");
    let cluster = start(false).await;
    let before = cluster.pod_uids().await;
    resize(&cluster).await;
    cluster.settle().await;
    assert_updated(&cluster, "forbidden").await;
    let all = ["web-0", "web-1", "web-2"];
    assert_eq!(replaced(&cluster, &before).await, all);
}

#[tokio::test(start_paused = true)]
async fn built_in_rules_take_a_pod_in_flight_for_an_old_one() {
    integration::embedded_only!("delays resizes");
    let mut cluster = start(true).await;
    let before = cluster.pod_uids().await;
    resize(&cluster).await;
    until_in_flight(&cluster).await;
    cluster.kill_controller().await;
    cluster.start_controller_with(FeatureGates::default());
    cluster.settle().await;
    assert_updated(&cluster, "taken over").await;
    let all = ["web-0", "web-1", "web-2"];
    assert_eq!(replaced(&cluster, &before).await, all);
}
