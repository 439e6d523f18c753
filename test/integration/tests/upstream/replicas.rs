//! Status updates after spec changes.

use integration::World;
use integration::space::SERVICES;
use integration::stateful_sets::{
    PATIENCE, count, create_stable, headless_service, list_pods, scale_stable, set_pod_ready,
    stateful_set, until_status,
};
use serde_json::json;
use statefulset_client::resource::STATEFUL_SETS;

/// Runs the API server alone: its defaulting must not count as a spec change.
#[tokio::test(start_paused = true)]
async fn test_volume_template_noop_update() {
    let world = World::api_server().await;
    let space = world.namespace("test-volume-template-noop-update").await;
    let original = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "nginx"}},
            "serviceName": "nginx",
            "replicas": 3,
            "template": {
                "metadata": {"labels": {"app": "nginx"}},
                "spec": {
                    "terminationGracePeriodSeconds": 10,
                    "containers": [{
                        "name": "nginx",
                        "image": "registry.k8s.io/nginx-slim:0.8",
                        "ports": [{"containerPort": 80, "name": "web"}],
                        "volumeMounts": [{"name": "www", "mountPath": "/usr/share/nginx/html"}],
                    }],
                },
            },
            "volumeClaimTemplates": [{
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "www"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "my-storage-class",
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }],
        },
    });
    let created = space.create(&STATEFUL_SETS, &original).await;
    let mut update = created.clone();
    update["spec"] = original["spec"].clone();
    let updated = space.put(&STATEFUL_SETS, "web", "", &update).await.unwrap();
    assert_eq!(updated["spec"], created["spec"]);
    assert_eq!(updated["metadata"]["generation"], 1);
}

#[tokio::test(start_paused = true)]
async fn test_spec_replicas_change() {
    let world = World::with_controller().await;
    let space = world.namespace("test-spec-replicas-change").await;
    space
        .create(&SERVICES, &headless_service("fake-service-name"))
        .await;
    create_stable(&space, &stateful_set("sts", 2)).await;
    for replicas in [3, 0, 2] {
        let set = scale_stable(&space, "sts", replicas).await;
        assert_eq!(count(&set, "replicas"), i64::from(replicas));
    }

    let before = space.get(&STATEFUL_SETS, "sts").await;
    let annotate = |set: &mut serde_json::Value| {
        set["spec"]["template"]["metadata"]["annotations"] = json!({"test": "annotation"});
    };
    let after = space.change(&STATEFUL_SETS, "sts", "", annotate).await;
    let generation = after["metadata"]["generation"].as_i64().unwrap();
    assert_ne!(before["metadata"]["generation"], generation);
    let seen = async || {
        let set = space.get(&STATEFUL_SETS, "sts").await;
        (count(&set, "observedGeneration") >= generation).then_some(())
    };
    PATIENCE.until("the generation is observed", seen).await;
}

mod test_stateful_set_available {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_certain_replicas_would_become_active() {
        let world = World::with_controller().await;
        let space = world.namespace("test-available-pods").await;
        let mut set = stateful_set("sts", 4);
        set["spec"]["minReadySeconds"] = 3600.into();
        create_stable(&space, &set).await;
        let pods = list_pods(&space).await;
        assert_eq!(pods.len(), 4);
        let now = world.now();
        let long_ago = now - jiff::SignedDuration::from_mins(120);
        let states = [
            (false, now),
            (true, now),
            (true, long_ago),
            (true, long_ago),
        ];
        for (pod, (ready, since)) in pods.iter().zip(states) {
            let name = integration::stateful_sets::name(pod);
            set_pod_ready(&space, name, ready, since).await;
        }
        let wanted = [
            ("replicas", 4),
            ("readyReplicas", 3),
            ("availableReplicas", 2),
        ];
        until_status(&space, "sts", &wanted).await;
    }
}
