//! Tests of claims that grow, with the whole controller, its default role, and an expanding provider.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use integration::manifests;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{
    ActorsConfig, KubeletConfig, PodBehaviour, VolumeBinderConfig,
};
use kube_test_control_plane::admission::{AdmissionRequest, Denial, Operation};
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::clock::TokioClock;
use serde_json::{Value, json};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS};
use statefulset_client::rest::RestClient;
use statefulset_controller::StatefulSetController;
use tokio::task::JoinSet;

const CLASSES: Resource = Resource {
    group: "storage.k8s.io",
    version: "v1",
    plural: "storageclasses",
    kind: "StorageClass",
};

/// Time to expand a volume.
const EXPANSION: Duration = Duration::from_secs(10);

/// A cluster with a set of three pods, each with a claim of a gibibyte.
struct Cluster {
    plane: TestControlPlane,
    admin: RestClient,
    _tasks: JoinSet<()>,
}

impl Cluster {
    /// Starts a cluster whose class has these fields.
    async fn start(class: Value) -> Self {
        let clock = TokioClock::starting_at("2026-03-01T12:00:00Z".parse().expect("a time"));
        let pods = PodBehaviour::with_delays(Duration::from_secs(1));
        let actors = ActorsConfig::all()
            .kubelet(KubeletConfig::new(pods))
            .volume_binder(VolumeBinderConfig::default().expansion_delay(EXPANSION));
        let plane = TestControlPlane::builder()
            .clock(Arc::new(clock.clone()))
            .actors(actors)
            .start()
            .await;
        let account = Identity::service_account("kube-system", "statefulset-controller");
        let client = RestClient::new(plane.client_as(account));
        let controller = StatefulSetController::builder_with_clients(client.clone(), client)
            .clock(Arc::new(clock))
            .feature_gates(FeatureGates::default().with_opt_ins())
            .resync_period(None)
            .seed(7)
            .build()
            .expect("the settings can be honoured");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            controller
                .run(std::future::pending())
                .await
                .expect("the controller runs");
        });
        let cluster = Self {
            admin: RestClient::new(plane.client()),
            plane,
            _tasks: tasks,
        };
        let mut object = json!({"metadata": {"name": "disk"}, "provisioner": "example.com/p"});
        for (member, value) in class.as_object().into_iter().flatten() {
            object[member] = value.clone();
        }
        let created = cluster.admin.create(&CLASSES, "", object.to_string());
        created.await.expect("the object is created");
        let mut set = manifests::web(3);
        set["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] = json!("disk");
        let created = cluster
            .admin
            .create(&STATEFUL_SETS, "default", set.to_string());
        created.await.expect("the object is created");
        cluster.pass(60).await;
        cluster
    }

    async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Sets annotations of opt-ins.
    async fn choose(&self, choices: Value) {
        let mut annotations = json!({});
        for (name, value) in choices.as_object().into_iter().flatten() {
            annotations[format!("statefulset-controller-manager/{name}")] = value.clone();
        }
        let mut set = self.object(&STATEFUL_SETS, "web").await;
        set["metadata"]["annotations"] = annotations;
        let replaced = self
            .admin
            .replace(&STATEFUL_SETS, "default", "web", set.to_string());
        replaced.await.expect("the object is replaced");
    }

    async fn object(&self, resource: &Resource, name: &str) -> Value {
        let text = self
            .admin
            .get(resource, "default", name)
            .await
            .expect("the object exists");
        serde_json::from_str(&text).expect("the server sends JSON")
    }

    /// Returns the request and the capacity of each claim, by ordinal.
    async fn claims(&self) -> String {
        let mut sizes = Vec::new();
        for ordinal in 0..3 {
            let name = format!("data-web-{ordinal}");
            let claim = self.object(&PERSISTENT_VOLUME_CLAIMS, &name).await;
            let size = |pointer: &str| {
                claim
                    .pointer(pointer)
                    .and_then(Value::as_str)
                    .expect("a size")
            };
            let request = size("/spec/resources/requests/storage");
            sizes.push(format!("{request}/{}", size("/status/capacity/storage")));
        }
        sizes.join(" ")
    }

    /// Returns the uids of the pods.
    async fn pods(&self) -> BTreeMap<String, Value> {
        let mut uids = BTreeMap::new();
        for ordinal in 0..3 {
            let name = format!("web-{ordinal}");
            let pod = self.object(&PODS, &name).await;
            uids.insert(name, pod["metadata"]["uid"].clone());
        }
        uids
    }

    async fn condition(&self) -> String {
        let set = self.object(&STATEFUL_SETS, "web").await;
        let conditions = set["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let found = conditions.find(|it| it["type"] == "ClaimsResized");
        found.map_or_else(String::new, |it| {
            let text = |member: &str| it[member].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("status"), text("reason"))
        })
    }

    /// Returns the pods that the controller updated, one by one.
    fn pod_updates(&self) -> Vec<String> {
        let audit = self.plane.server().audit();
        let entries = audit.entries();
        let updates = entries.iter().filter(|entry| {
            entry.verb == kube_test_control_plane::route::Verb::Update
                && entry.resource == "pods"
                && entry.user.ends_with(":statefulset-controller")
        });
        updates.map(|entry| entry.name.clone()).collect()
    }

    /// Returns the number of claim updates by the controller, refused ones included.
    fn updates(&self) -> usize {
        let audit = self.plane.server().audit();
        let entries = audit.entries();
        let updates = entries.iter().filter(|entry| {
            entry.is_write()
                && entry.resource == "persistentvolumeclaims"
                && entry.user.ends_with(":statefulset-controller")
                && entry.body_value()["metadata"].get("uid").is_some()
        });
        updates.count()
    }
}

#[tokio::test(start_paused = true)]
async fn claims_grow_in_order_while_their_pods_run() {
    integration::embedded_only!("drives the volume binder");
    let cluster = Cluster::start(json!({"allowVolumeExpansion": true})).await;
    let pods = cluster.pods().await;
    cluster.choose(json!({"claim-size": "data=2Gi"})).await;
    cluster.pass(5).await;
    assert_eq!(cluster.claims().await, "1Gi/1Gi 1Gi/1Gi 2Gi/1Gi");
    assert_eq!(cluster.condition().await, "False Growing");
    cluster.pass(10).await;
    assert_eq!(cluster.claims().await, "1Gi/1Gi 2Gi/1Gi 2Gi/2Gi");
    cluster.pass(60).await;
    assert_eq!(cluster.claims().await, "2Gi/2Gi 2Gi/2Gi 2Gi/2Gi");
    assert_eq!(cluster.condition().await, "True AllClaimsResized");
    assert_eq!(cluster.updates(), 3);
    assert_eq!(cluster.pods().await, pods, "no pod restarted");

    cluster.choose(json!({})).await;
    cluster.pass(5).await;
    assert_eq!(cluster.condition().await, "");
}

#[tokio::test(start_paused = true)]
async fn class_that_forbids_expansion_is_asked_less_and_less() {
    integration::embedded_only!("drives the volume binder");
    let cluster = Cluster::start(json!({})).await;
    cluster.choose(json!({"claim-size": "data=2Gi"})).await;
    cluster.pass(3600).await;
    assert_eq!(cluster.claims().await, "1Gi/1Gi 1Gi/1Gi 1Gi/1Gi");
    assert_eq!(cluster.condition().await, "False ClassForbids");
    // After 30, 60, 120, 240 and 480 seconds, then every ten minutes, for each claim.
    let updates = cluster.updates();
    assert!((24..=36).contains(&updates), "{updates}");
}

#[tokio::test(start_paused = true)]
async fn pods_restart_one_by_one_if_the_set_asks_for_it() {
    integration::embedded_only!("drives the volume binder");
    let class = json!({"allowVolumeExpansion": true, "parameters": {"expansion": "with-pod"}});
    let cluster = Cluster::start(class).await;
    let pods = cluster.pods().await;
    cluster.choose(json!({"claim-size": "data=2Gi"})).await;
    cluster.pass(600).await;
    assert_eq!(cluster.claims().await, "2Gi/1Gi 2Gi/1Gi 2Gi/1Gi");
    assert_eq!(cluster.condition().await, "False AwaitsPodRestart");
    assert_eq!(cluster.pods().await, pods, "no pod restarted");

    let choices = json!({"claim-size": "data=2Gi", "claim-resize": "with-pod"});
    cluster.choose(choices).await;
    cluster.pass(600).await;
    assert_eq!(cluster.claims().await, "2Gi/2Gi 2Gi/2Gi 2Gi/2Gi");
    assert_eq!(cluster.condition().await, "True AllClaimsResized");
    let restarted = cluster.pods().await;
    assert!(pods.iter().all(|(name, uid)| restarted[name] != *uid));
    let audit = cluster.plane.server().audit();
    let entries = audit.entries();
    let deletions = entries.iter().filter(|entry| {
        entry.resource == "pods"
            && entry.verb == kube_test_control_plane::route::Verb::Delete
            && entry.user.ends_with(":statefulset-controller")
    });
    let deletions: Vec<&str> = deletions.map(|entry| &*entry.name).collect();
    assert_eq!(
        deletions,
        ["web-2", "web-1", "web-0"],
        "each pod restarted once"
    );
}

#[tokio::test(start_paused = true)]
async fn gate_holds_pods_that_restart_for_their_volumes() {
    integration::embedded_only!("drives the volume binder");
    let class = json!({"allowVolumeExpansion": true, "parameters": {"expansion": "with-pod"}});
    let cluster = Cluster::start(class).await;
    let pods = cluster.pods().await;
    let choices = json!({
        "claim-size": "data=2Gi",
        "claim-resize": "with-pod",
        "removal-gate": "app=web",
        "removal-gate-timeout": "10m",
    });
    cluster.choose(choices).await;
    cluster.pass(300).await;
    assert_eq!(cluster.pods().await, pods, "the gate holds");
    let changes = cluster.pod_updates();
    assert_eq!(changes, ["web-2"], "one request, not withdrawn");
    cluster.pass(3_600).await;
    assert_eq!(cluster.claims().await, "2Gi/2Gi 2Gi/2Gi 2Gi/2Gi");
    assert_eq!(cluster.pod_updates(), ["web-2", "web-1", "web-0"]);
}

#[tokio::test(start_paused = true)]
async fn quota_and_provider_are_named() {
    integration::embedded_only!("drives the volume binder");
    let cluster = Cluster::start(json!({"allowVolumeExpansion": true})).await;
    let hook = |request: &mut AdmissionRequest<'_>| {
        let is_claim = request.kind.plural == "persistentvolumeclaims";
        if is_claim && request.operation == Operation::Update && request.subresource.is_empty() {
            let reason = "exceeded quota: disks, requested: requests.storage=1Gi";
            return Err(Denial::Forbidden(reason.to_owned()));
        }
        Ok(())
    };
    cluster.plane.server().admission().add("quota", hook);
    cluster.choose(json!({"claim-size": "data=2Gi"})).await;
    cluster.pass(60).await;
    assert_eq!(cluster.condition().await, "False QuotaExceeded");

    for (way, reason, claims) in [
        ("fails", "False ProviderError", "1Gi/1Gi 1Gi/1Gi 2Gi/1Gi"),
        ("infeasible", "False Infeasible", "2Gi/1Gi 2Gi/1Gi 2Gi/1Gi"),
    ] {
        let class = json!({"allowVolumeExpansion": true, "parameters": {"expansion": way}});
        let cluster = Cluster::start(class).await;
        cluster.choose(json!({"claim-size": "data=2Gi"})).await;
        cluster.pass(600).await;
        assert_eq!(cluster.condition().await, reason);
        assert_eq!(cluster.claims().await, claims);
    }
}
