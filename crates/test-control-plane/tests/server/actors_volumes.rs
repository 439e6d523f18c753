//! Volumes of claims, from provisioning to release.

use std::time::Duration;

use crate::support::{Plane, claim, eventually, is_ready, pod};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{
    BindingMode, ClaimRule, KubeletConfig, ReclaimPolicy, VolumeBinderConfig, VolumeClass,
};
use serde_json::{Value, json};
use tokio::time::Instant;

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "/api/v1/namespaces/default/pods/p";

async fn plane(config: VolumeBinderConfig) -> Plane {
    let builder = TestControlPlane::builder()
        .kubelet(KubeletConfig::default())
        .configure_actors(|actors| actors.volume_binder = Some(config));
    Plane::new(builder.start().await)
}

fn user(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    pod
}

fn volume(name: &str, size: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
        },
    })
}

async fn phase(plane: &Plane, path: &str) -> String {
    let phase = &plane.get(path).await["status"]["phase"];
    phase.as_str().unwrap().to_owned()
}

fn by_hand() -> VolumeBinderConfig {
    VolumeBinderConfig::default().default_class(VolumeClass::default().provisions(false))
}

#[tokio::test(start_paused = true)]
async fn provisioned_volume_and_claim_reference_each_other() {
    let config = VolumeBinderConfig::default().provision_delay(Duration::from_secs(6));
    let plane = plane(config).await;
    plane.create(PODS, &user("p")).await;
    let mut body = claim("data");
    body["spec"]["storageClassName"] = json!("fast");
    let created = plane.create(CLAIMS, &body).await;
    let start = Instant::now();
    let conditions = |pod: Value| pod["status"]["conditions"][0]["message"].clone();
    eventually(|| async {
        conditions(plane.get(POD).await)
            .as_str()
            .is_some_and(|message| {
                message.starts_with(
                    "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
                )
            })
    })
    .await;
    eventually(|| async { phase(&plane, CLAIM).await == "Bound" }).await;
    assert_eq!(start.elapsed().as_secs(), 6);
    let bound = plane.get(CLAIM).await;
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let name = format!("pvc-{uid}");
    assert_eq!(bound["spec"]["volumeName"], name);
    assert_eq!(bound["status"]["capacity"], json!({"storage": "1Gi"}));
    assert_eq!(bound["status"]["accessModes"], json!(["ReadWriteOnce"]));
    let notes = &bound["metadata"]["annotations"];
    assert_eq!(notes["pv.kubernetes.io/bind-completed"], "yes");
    assert_eq!(notes["pv.kubernetes.io/bound-by-controller"], "yes");
    let made = plane.get(&format!("{VOLUMES}/{name}")).await;
    assert_eq!(made["status"]["phase"], "Bound");
    let spec = &made["spec"];
    assert_eq!(
        (&spec["claimRef"]["name"], &spec["claimRef"]["uid"]),
        (&json!("data"), &json!(uid))
    );
    assert_eq!(
        (
            &spec["storageClassName"],
            &spec["persistentVolumeReclaimPolicy"]
        ),
        (&json!("fast"), &json!("Delete"))
    );
    assert_eq!(
        made["metadata"]["finalizers"],
        json!(["kubernetes.io/pv-protection"])
    );
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_provisioning_is_retried() {
    let config =
        VolumeBinderConfig::default().claims([ClaimRule::default().name("data").failures(2)]);
    let plane = plane(config).await;
    plane.create(CLAIMS, &claim("data")).await;
    plane.create(CLAIMS, &claim("other")).await;
    let mut noted = claim("noted");
    noted["metadata"]["annotations"] = json!({"volume-binder.test-control-plane/failures": "1000"});
    plane.create(CLAIMS, &noted).await;
    let start = Instant::now();
    let other = format!("{CLAIMS}/other");
    eventually(|| async { phase(&plane, &other).await == "Bound" }).await;
    assert_eq!(start.elapsed().as_secs(), 0);
    eventually(|| async { phase(&plane, CLAIM).await == "Bound" }).await;
    assert_eq!(start.elapsed().as_secs(), 30);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(phase(&plane, &format!("{CLAIMS}/noted")).await, "Pending");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn smallest_matching_volume_is_bound() {
    let plane = plane(by_hand()).await;
    plane.create(VOLUMES, &volume("small", "512Mi")).await;
    plane.create(VOLUMES, &volume("large", "10Gi")).await;
    plane.create(VOLUMES, &volume("medium", "2Gi")).await;
    let mut other = volume("other", "1Gi");
    other["spec"]["storageClassName"] = json!("other");
    plane.create(VOLUMES, &other).await;
    for name in ["small", "medium", "large", "other"] {
        let path = format!("{VOLUMES}/{name}");
        eventually(|| async { phase(&plane, &path).await == "Available" }).await;
    }
    plane.create(CLAIMS, &claim("data")).await;
    eventually(|| async { phase(&plane, CLAIM).await == "Bound" }).await;
    let bound = plane.get(CLAIM).await;
    assert_eq!(bound["spec"]["volumeName"], "medium");
    assert_eq!(bound["status"]["capacity"], json!({"storage": "2Gi"}));

    // A later volume is found, too.
    let mut huge = claim("huge");
    huge["spec"]["resources"]["requests"]["storage"] = json!("100Gi");
    plane.create(CLAIMS, &huge).await;
    let huge = format!("{CLAIMS}/huge");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(phase(&plane, &huge).await, "Pending");
    plane.create(VOLUMES, &volume("huge", "100Gi")).await;
    eventually(|| async { phase(&plane, &huge).await == "Bound" }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn volumes_and_claims_can_be_prebound() {
    let plane = plane(by_hand()).await;
    let mut kept = volume("kept", "10Gi");
    kept["spec"]["claimRef"] = json!({"namespace": "default", "name": "data"});
    plane.create(VOLUMES, &kept).await;
    plane.create(VOLUMES, &volume("named", "10Gi")).await;
    plane.create(VOLUMES, &volume("fitting", "1Gi")).await;
    let mut naming = claim("naming");
    naming["spec"]["volumeName"] = json!("named");
    plane.create(CLAIMS, &naming).await;
    plane.create(CLAIMS, &claim("data")).await;
    for (name, volume) in [("data", "kept"), ("naming", "named")] {
        let path = format!("{CLAIMS}/{name}");
        eventually(|| async { phase(&plane, &path).await == "Bound" }).await;
        assert_eq!(plane.get(&path).await["spec"]["volumeName"], volume);
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn first_consumer_determines_a_local_volumes_node() {
    let config = VolumeBinderConfig::default()
        .default_class(
            VolumeClass::default()
                .binding(BindingMode::WaitForFirstConsumer)
                .local(true),
        )
        .provision_delay(Duration::from_secs(5));
    let plane = plane(config).await;
    // Another pod is on the first node, so the second one is chosen.
    plane.create(PODS, &pod("other")).await;
    plane.create(CLAIMS, &claim("data")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(phase(&plane, CLAIM).await, "Pending");
    plane.create(PODS, &user("p")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    assert_eq!(plane.get(POD).await["spec"]["nodeName"], "node-1");
    let bound = plane.get(CLAIM).await;
    assert_eq!(
        bound["metadata"]["annotations"]["volume.kubernetes.io/selected-node"],
        "node-1"
    );
    let restart = |plane: Plane| async {
        plane.0.pods().delete("default", "p", None).await.unwrap();
        eventually(|| async { plane.code(POD).await == 404 }).await;
        plane.create(PODS, &user("p")).await;
        plane
    };
    let plane = restart(plane).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    assert_eq!(plane.get(POD).await["spec"]["nodeName"], "node-1");
    plane.0.nodes().cordon("node-1").await.unwrap();
    let plane = restart(plane).await;
    eventually(|| async { plane.get(POD).await["status"]["conditions"].is_array() }).await;
    let pod = plane.get(POD).await;
    let why = pod["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(
        why.starts_with(
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match \
             PersistentVolume's node affinity."
        ),
        "{why}"
    );
    plane.0.nodes().uncordon("node-1").await.unwrap();
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn existing_local_volumes_determine_the_node() {
    let mut config = by_hand();
    config.default_class.binding = BindingMode::WaitForFirstConsumer;
    let plane = plane(config).await;
    let mut local = volume("local", "1Gi");
    local["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [{
        "matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]},
        ],
    }]}});
    plane.create(VOLUMES, &local).await;
    plane.create(CLAIMS, &claim("data")).await;
    plane.create(PODS, &user("p")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    assert_eq!(plane.get(POD).await["spec"]["nodeName"], "node-2");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn reclaim_policy_determines_a_volumes_fate() {
    for (reclaim, stays) in [
        (ReclaimPolicy::Retain, true),
        (ReclaimPolicy::Delete, false),
    ] {
        let config =
            VolumeBinderConfig::default().default_class(VolumeClass::default().reclaim(reclaim));
        let plane = plane(config).await;
        plane.create(CLAIMS, &claim("data")).await;
        eventually(|| async { phase(&plane, CLAIM).await == "Bound" }).await;
        let name = plane.get(CLAIM).await["spec"]["volumeName"].clone();
        let volume = format!("{VOLUMES}/{}", name.as_str().unwrap());
        plane.call(Method::DELETE, CLAIM, &json!({})).await;
        eventually(|| async { plane.code(CLAIM).await == 404 }).await;
        if stays {
            eventually(|| async { phase(&plane, &volume).await == "Released" }).await;
            // No claim gets a released volume.
            plane.create(CLAIMS, &claim("data")).await;
            eventually(|| async { phase(&plane, CLAIM).await == "Bound" }).await;
            assert_ne!(plane.get(CLAIM).await["spec"]["volumeName"], name);
            assert_eq!(phase(&plane, &volume).await, "Released");
        } else {
            eventually(|| async { plane.code(&volume).await == 404 }).await;
        }
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn claims_and_volumes_in_use_stay() {
    let plane = plane(VolumeBinderConfig::default()).await;
    plane.create(CLAIMS, &claim("data")).await;
    plane.create(PODS, &user("p")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    let name = plane.get(CLAIM).await["spec"]["volumeName"].clone();
    let volume = format!("{VOLUMES}/{}", name.as_str().unwrap());
    plane.call(Method::DELETE, &volume, &json!({})).await;
    plane.call(Method::DELETE, CLAIM, &json!({})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(plane.is_deleting(&volume).await && plane.is_deleting(CLAIM).await);
    // A pod created now uses a terminating claim.
    plane.create(PODS, &user("late")).await;
    let late = format!("{PODS}/late");
    eventually(|| async { plane.get(&late).await["status"]["conditions"].is_array() }).await;
    let why = plane.get(&late).await["status"]["conditions"][0]["message"].clone();
    assert!(
        why.as_str().unwrap().starts_with(
            "0/3 nodes are available: persistentvolumeclaim \"data\" is being deleted."
        ),
        "{why}"
    );
    plane.0.pods().delete("default", "p", None).await.unwrap();
    eventually(|| async { plane.code(CLAIM).await == 404 }).await;
    eventually(|| async { plane.code(&volume).await == 404 }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stored_classes_set_binding_and_default() {
    const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
    let plane = plane(VolumeBinderConfig::default()).await;
    let unnamed = plane.create(CLAIMS, &claim("before")).await;
    assert_eq!(unnamed["spec"].get("storageClassName"), None);
    let class = |name: &str, is_default: bool| {
        json!({
            "metadata": {"name": name, "annotations": {
                "storageclass.kubernetes.io/is-default-class": is_default.to_string()}},
            "provisioner": "example.com/disk",
            "volumeBindingMode": "WaitForFirstConsumer",
        })
    };
    for (name, is_default) in [("slow", true), ("fast", true), ("other", false)] {
        plane.create(CLASSES, &class(name, is_default)).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let stored = plane.get(&format!("{CLASSES}/fast")).await;
    assert_eq!(stored["reclaimPolicy"], "Delete");
    let made = plane.create(CLAIMS, &claim("data")).await;
    assert_eq!(made["spec"]["storageClassName"], "fast");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(phase(&plane, CLAIM).await, "Pending");
    plane.create(PODS, &user("p")).await;
    eventually(|| async { phase(&plane, CLAIM).await == "Bound" }).await;
    // An explicit empty class opts out.
    let mut none = claim("none");
    none["spec"]["storageClassName"] = json!("");
    let none = plane.create(CLAIMS, &none).await;
    assert_eq!(none["spec"]["storageClassName"], "");
    let path = format!("{CLASSES}/fast");
    let mut changed = stored.clone();
    changed["provisioner"] = json!("");
    changed["volumeBindingMode"] = json!("Immediate");
    let (code, answer) = plane.call(Method::PUT, &path, &changed).await;
    assert_eq!(code, 422);
    let message = answer["message"].as_str().unwrap();
    for part in [
        "provisioner: Required value",
        "provisioner: Invalid value: \"\": field is immutable",
        "volumeBindingMode: Invalid value: \"Immediate\": field is immutable",
    ] {
        assert!(message.contains(part), "{message}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn volumes_grow_as_their_class_says() {
    const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
    for way in ["", "with-pod", "fails", "infeasible"] {
        let plane = plane(VolumeBinderConfig::default()).await;
        let mut class = json!({
            "metadata": {"name": "c"}, "provisioner": "example.com/disk",
            "allowVolumeExpansion": true,
        });
        if !way.is_empty() {
            class["parameters"] = json!({"expansion": way});
        }
        plane.create(CLASSES, &class).await;
        let mut data = claim("data");
        data["spec"]["storageClassName"] = json!("c");
        plane.create(CLAIMS, &data).await;
        plane.create(PODS, &user("p")).await;
        eventually(|| async { is_ready(&plane.get(POD).await) }).await;
        let patch = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        let (code, refused) = plane.call(Method::PATCH, CLAIM, &patch).await;
        assert_eq!(code, 200, "{refused}");
        tokio::time::sleep(Duration::from_secs(60)).await;

        let status = plane.get(CLAIM).await["status"].clone();
        let condition = &status["conditions"][0]["type"];
        let size = &status["capacity"]["storage"];
        match way {
            "with-pod" => {
                assert_eq!(
                    (size, condition),
                    (&json!("1Gi"), &json!("FileSystemResizePending"))
                );
                plane.0.pods().delete("default", "p", None).await.unwrap();
                eventually(|| async { plane.code(POD).await == 404 }).await;
                plane.create(PODS, &user("p")).await;
                eventually(|| async {
                    let status = plane.get(CLAIM).await["status"].clone();
                    status["capacity"]["storage"] == "2Gi"
                        && status["conditions"].as_array().is_none_or(Vec::is_empty)
                })
                .await;
            }
            "fails" => {
                assert_eq!(
                    (size, condition),
                    (&json!("1Gi"), &json!("ControllerResizeError"))
                );
            }
            "infeasible" => {
                let resource = &status["allocatedResourceStatuses"]["storage"];
                assert_eq!(
                    (size, resource),
                    (&json!("1Gi"), &json!("ControllerResizeInfeasible"))
                );
            }
            _ => {
                assert_eq!(size, "2Gi");
                let volume = plane.get(CLAIM).await["spec"]["volumeName"].clone();
                let volume = format!("{VOLUMES}/{}", volume.as_str().unwrap());
                assert_eq!(
                    plane.get(&volume).await["spec"]["capacity"]["storage"],
                    "2Gi"
                );
            }
        }
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn claims_are_protected_without_the_volume_binder() {
    let builder = TestControlPlane::builder()
        .kubelet(KubeletConfig::default())
        .garbage_collector();
    let plane = Plane::new(builder.start().await);
    plane.create(CLAIMS, &claim("data")).await;
    plane.create(PODS, &user("p")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane.call(Method::DELETE, CLAIM, &Value::Null).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(plane.is_deleting(CLAIM).await);
    plane.call(Method::DELETE, POD, &Value::Null).await;
    eventually(|| async { plane.code(CLAIM).await == 404 }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn claim_without_its_volume_becomes_lost() {
    let plane = plane(VolumeBinderConfig::default()).await;
    plane.create(CLAIMS, &claim("data")).await;
    eventually(|| async { phase(&plane, CLAIM).await == "Bound" }).await;
    let name = plane.get(CLAIM).await["spec"]["volumeName"].clone();
    let volume = format!("{VOLUMES}/{}", name.as_str().unwrap());
    plane.call(Method::DELETE, &volume, &json!({})).await;
    let release = json!({"metadata": {"finalizers": null}});
    plane.call(Method::PATCH, &volume, &release).await;
    eventually(|| async { phase(&plane, CLAIM).await == "Lost" }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn claims_with_an_empty_class_are_not_provisioned() {
    let plane = plane(VolumeBinderConfig::default()).await;
    let mut body = claim("data");
    body["spec"]["storageClassName"] = json!("");
    plane.create(CLAIMS, &body).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(phase(&plane, CLAIM).await, "Pending");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_volume_binder_pods_do_not_wait_for_claims() {
    let builder = TestControlPlane::builder().kubelet(KubeletConfig::default());
    let plane = Plane::new(builder.start().await);
    plane.create(PODS, &user("p")).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn ephemeral_volumes_get_claims_that_live_as_long_as_their_pod() {
    let plane = Plane::new(TestControlPlane::builder().all_actors().start().await);
    let mut body = pod("p");
    let spec = claim("unused")["spec"].clone();
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": spec});
    body["spec"]["volumes"] =
        json!([{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}]);
    let created = plane.create(PODS, &body).await;
    let ready = async || is_ready(&plane.get(POD).await);
    eventually(ready).await;
    let path = format!("{CLAIMS}/p-v");
    let claim = plane.get(&path).await;
    assert_eq!(claim["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(
        claim["metadata"]["ownerReferences"][0]["uid"],
        created["metadata"]["uid"]
    );
    plane.call(Method::DELETE, &path, &json!({})).await;
    plane.call(Method::DELETE, POD, &json!({})).await;
    let gone = async || plane.code(&path).await == 404 && plane.code(POD).await == 404;
    eventually(gone).await;
    plane.stop().await;
}
