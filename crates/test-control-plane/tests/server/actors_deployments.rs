//! The controllers of deployments and replica sets.

use std::time::Duration;

use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{KubeletConfig, Outcome, PodBehaviour, PodMatcher, PodRule};
use kube_test_control_plane::admission::{AdmissionRequest, Denial};
use kube_test_control_plane::audit::Settle;
use serde_json::{Value, json};

use crate::support::{Plane, call_patch};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

async fn plane(behaviour: PodBehaviour) -> Plane {
    let kubelet = KubeletConfig::new(behaviour);
    let builder = TestControlPlane::builder().kubelet(kubelet).all_actors();
    Plane::new(builder.start().await)
}

fn deployment(replicas: u32, strategy: &Value) -> Value {
    json!({
        "metadata": {"name": "web", "annotations": {"note": "copied"}},
        "spec": {
            "replicas": replicas,
            "strategy": strategy,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]},
            },
        },
    })
}

async fn settle(plane: &Plane) {
    let quiet = Settle::quiet_for(Duration::from_secs(60));
    plane.0.server().audit().settle(&quiet).await.unwrap();
}

async fn items(plane: &Plane, path: &str) -> Vec<Value> {
    plane.get(path).await["items"].as_array().unwrap().clone()
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|it| it["type"] == kind).unwrap()
}

async fn set_image(plane: &Plane, image: &str) {
    let containers = json!([{"name": "c", "image": image}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    call_patch(plane, WEB, &patch).await;
}

#[tokio::test(start_paused = true)]
async fn deployment_becomes_available_and_scales() {
    let plane = plane(PodBehaviour::default()).await;
    plane.create(DEPLOYMENTS, &deployment(3, &json!({}))).await;
    settle(&plane).await;
    let web = plane.get(WEB).await;
    assert_eq!(
        web["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
    for (member, count) in [
        ("observedGeneration", 1),
        ("replicas", 3),
        ("updatedReplicas", 3),
        ("readyReplicas", 3),
        ("availableReplicas", 3),
    ] {
        assert_eq!(web["status"][member], count, "{member}: {}", web["status"]);
    }
    assert_eq!(web["status"].get("unavailableReplicas"), None);
    assert_eq!(condition(&web, "Available")["status"], "True");
    let progressing = condition(&web, "Progressing");
    assert_eq!(progressing["reason"], "NewReplicaSetAvailable");
    let sets = items(&plane, SETS).await;
    let [set] = sets.as_slice() else {
        panic!("{sets:?}");
    };
    let annotations = &set["metadata"]["annotations"];
    assert_eq!(
        annotations["deployment.kubernetes.io/desired-replicas"],
        "3"
    );
    assert_eq!(annotations["deployment.kubernetes.io/max-replicas"], "4");
    assert_eq!(annotations["note"], "copied");
    let hash = &set["spec"]["selector"]["matchLabels"]["pod-template-hash"];
    let name = format!("web-{}", hash.as_str().unwrap());
    assert_eq!(set["metadata"]["name"], *name);
    for pod in items(&plane, PODS).await {
        assert_eq!(pod["metadata"]["labels"]["pod-template-hash"], *hash);
        assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], *name);
    }
    for replicas in [5, 1, 0] {
        let scale = json!({"spec": {"replicas": replicas}});
        call_patch(&plane, &format!("{WEB}/scale"), &scale).await;
        settle(&plane).await;
        assert_eq!(items(&plane, PODS).await.len(), replicas);
        let web = plane.get(WEB).await;
        assert_eq!(
            web["status"]["availableReplicas"].as_u64().unwrap_or(0),
            replicas as u64
        );
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn rolling_update_keeps_its_bounds() {
    let plane = plane(PodBehaviour::default().ready_delay(Duration::from_secs(3))).await;
    let rolling = json!({"maxSurge": 1, "maxUnavailable": 1});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
    plane.create(DEPLOYMENTS, &deployment(5, &strategy)).await;
    settle(&plane).await;
    set_image(&plane, "registry.example/c:2").await;
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let pods = items(&plane, PODS).await;
        let mut living = pods.clone();
        living.retain(|pod| pod["metadata"].get("deletionTimestamp").is_none());
        let ready = living
            .iter()
            .filter(|pod| crate::support::is_ready(pod))
            .count();
        assert!(
            living.len() <= 6 && ready >= 4,
            "{} pods, {ready} ready",
            living.len()
        );
    }
    let web = plane.get(WEB).await;
    assert_eq!(
        web["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "2"
    );
    assert_eq!(web["status"]["updatedReplicas"], 5);
    assert_eq!(
        condition(&web, "Progressing")["reason"],
        "NewReplicaSetAvailable"
    );
    for pod in items(&plane, PODS).await {
        assert_eq!(
            pod["spec"]["containers"][0]["image"],
            "registry.example/c:2"
        );
    }
    // Back to the first template: its replica set gets the next number.
    set_image(&plane, "registry.example/c:1").await;
    settle(&plane).await;
    let sets = items(&plane, SETS).await;
    assert_eq!(sets.len(), 2);
    let active = sets
        .iter()
        .find(|set| set["spec"]["replicas"] == 5)
        .unwrap();
    let annotations = &active["metadata"]["annotations"];
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "3");
    assert_eq!(
        annotations["deployment.kubernetes.io/revision-history"],
        "1"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn recreate_stops_the_old_pods_first() {
    let plane = plane(PodBehaviour::default().stop_delay(Duration::from_secs(5))).await;
    plane
        .create(DEPLOYMENTS, &deployment(3, &json!({"type": "Recreate"})))
        .await;
    settle(&plane).await;
    set_image(&plane, "registry.example/c:2").await;
    for _ in 0..150 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let pods = items(&plane, PODS).await;
        let image = |pod: &Value| pod["spec"]["containers"][0]["image"].clone();
        let first = pods.first().map(image);
        assert!(pods.iter().all(|pod| Some(image(pod)) == first), "{pods:?}");
    }
    let pods = items(&plane, PODS).await;
    assert_eq!(pods.len(), 3);
    assert_eq!(
        pods[0]["spec"]["containers"][0]["image"],
        "registry.example/c:2"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stuck_rollout_exceeds_its_deadline() {
    let bad = PodMatcher::default().image("*:bad");
    let never = PodBehaviour::default().outcome(Outcome::NeverReady);
    let mut kubelet = KubeletConfig::new(PodBehaviour::default());
    kubelet.rules = vec![PodRule::default().pods(bad).behaviour(never)];
    let builder = TestControlPlane::builder().kubelet(kubelet).all_actors();
    let plane = Plane::new(builder.start().await);
    let mut web = deployment(2, &json!({}));
    web["spec"]["progressDeadlineSeconds"] = json!(30);
    plane.create(DEPLOYMENTS, &web).await;
    settle(&plane).await;
    set_image(&plane, "registry.example/c:bad").await;
    settle(&plane).await;
    let web = plane.get(WEB).await;
    let progressing = condition(&web, "Progressing");
    assert_eq!(
        (&progressing["status"], &progressing["reason"]),
        (&json!("False"), &json!("ProgressDeadlineExceeded"))
    );
    assert_eq!(condition(&web, "Available")["status"], "True");
    assert_eq!(web["status"]["availableReplicas"], 2);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn paused_deployment_scales_but_does_not_roll() {
    let plane = plane(PodBehaviour::default()).await;
    plane.create(DEPLOYMENTS, &deployment(2, &json!({}))).await;
    settle(&plane).await;
    call_patch(
        &plane,
        WEB,
        &json!({"spec": {"paused": true, "replicas": 4}}),
    )
    .await;
    set_image(&plane, "registry.example/c:2").await;
    settle(&plane).await;
    let web = plane.get(WEB).await;
    assert_eq!(condition(&web, "Progressing")["reason"], "DeploymentPaused");
    let pods = items(&plane, PODS).await;
    assert_eq!(pods.len(), 4);
    assert!(
        pods.iter()
            .all(|pod| pod["spec"]["containers"][0]["image"] == "registry.example/c:1")
    );
    call_patch(&plane, WEB, &json!({"spec": {"paused": false}})).await;
    settle(&plane).await;
    let pods = items(&plane, PODS).await;
    assert!(
        pods.iter()
            .all(|pod| pod["spec"]["containers"][0]["image"] == "registry.example/c:2")
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn history_keeps_its_limit() {
    let plane = plane(PodBehaviour::default()).await;
    let mut web = deployment(1, &json!({}));
    web["spec"]["revisionHistoryLimit"] = json!(1);
    plane.create(DEPLOYMENTS, &web).await;
    for version in 2..5 {
        settle(&plane).await;
        set_image(&plane, &format!("registry.example/c:{version}")).await;
    }
    settle(&plane).await;
    assert_eq!(items(&plane, SETS).await.len(), 2);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn rejected_pods_show_in_the_conditions() {
    let plane = plane(PodBehaviour::default()).await;
    let admission = plane.0.server().admission();
    admission.add(
        "closed",
        |request: &mut AdmissionRequest<'_>| match &*request.kind.plural {
            "pods" => Err(Denial::Forbidden("no pods today".to_owned())),
            _ => Ok(()),
        },
    );
    plane.create(DEPLOYMENTS, &deployment(1, &json!({}))).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let web = plane.get(WEB).await;
    let failure = condition(&web, "ReplicaFailure");
    assert_eq!(failure["reason"], "FailedCreate");
    assert!(
        failure["message"]
            .as_str()
            .unwrap()
            .contains("no pods today")
    );
    admission.remove("closed");
    settle(&plane).await;
    let web = plane.get(WEB).await;
    assert_eq!(web["status"]["availableReplicas"], 1);
    let conditions = web["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions.iter().all(|it| it["type"] != "ReplicaFailure"),
        "{conditions:?}"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deleted_pods_are_replaced_and_deletion_cascades() {
    let plane = plane(PodBehaviour::default()).await;
    plane.create(DEPLOYMENTS, &deployment(3, &json!({}))).await;
    settle(&plane).await;
    let pods = items(&plane, PODS).await;
    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    plane
        .call(Method::DELETE, &format!("{PODS}/{name}"), &Value::Null)
        .await;
    settle(&plane).await;
    assert_eq!(items(&plane, PODS).await.len(), 3);
    plane.call(Method::DELETE, WEB, &Value::Null).await;
    settle(&plane).await;
    assert_eq!(
        items(&plane, SETS).await.len() + items(&plane, PODS).await.len(),
        0
    );
    plane.stop().await;
}
