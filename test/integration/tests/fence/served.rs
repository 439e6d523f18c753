//! The controller behind the fence, next to one that stands for the built-in controller.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use integration::manifests;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::{KubeletConfig, PodBehaviour};
use kube_test_control_plane::audit::AuditEntry;
use serde_json::{Value, json};
use statefulset_client::config::{ClientOptions, layered};
use statefulset_client::rest::RestClient;
use statefulset_controller::metrics::{ControllerMetrics, FenceMetrics, ServedNamespaces};
use statefulset_controller::{BuildError, RunError, StatefulSetController};
use statefulset_fence::names::{BUILT_IN_USER, FENCE, MIRROR, USER_DEFAULT};
use statefulset_fence::{FenceSettings, NamespaceSelector};
use tokio::task::JoinSet;
use tower::service_fn;

use crate::support::{OTHER, SERVED, User, install, install_policies};

/// Time that a pod takes each to start, to become ready and to stop.
const STAGE: Duration = Duration::from_secs(1);
/// Longer than a rollout takes.
const SETTLED: Duration = Duration::from_secs(90);

/// User agent of the built-in controllers.
const BUILT_IN_AGENT: &str = "kube-controller-manager/v1.36.2";

/// The values of the fence's metrics.
#[derive(Default)]
struct Counted {
    namespaces: Mutex<ServedNamespaces>,
    falls: Mutex<Vec<&'static str>>,
}

impl FenceMetrics for Counted {
    fn namespaces(&self, namespaces: ServedNamespaces) {
        *self.namespaces.lock().unwrap() = namespaces;
    }

    fn fell(&self, reason: &'static str) {
        self.falls.lock().unwrap().push(reason);
    }
}

/// A control plane with two controllers.
pub(crate) struct World {
    plane: TestControlPlane,
    pub(crate) admin: User,
    counted: Arc<Counted>,
    controllers: JoinSet<Result<(), RunError>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let plane = TestControlPlane::builder()
            .configure_actors(|actors| {
                actors.kubelet = Some(KubeletConfig::new(PodBehaviour::with_delays(STAGE)));
            })
            .all_actors()
            .start()
            .await;
        Self {
            admin: User::new(&plane, "admin"),
            plane,
            counted: Arc::default(),
            controllers: JoinSet::new(),
        }
    }

    /// A world with the fence, both namespaces, a set in each, and both controllers.
    pub(crate) async fn running() -> Self {
        let mut world = Self::new().await;
        install(&world.plane, &FenceSettings::default()).await;
        world.create_set(SERVED, 2).await;
        world.create_set(OTHER, 2).await;
        world.run_both();
        world.settle().await;
        world
    }

    /// Runs a controller in all namespaces, as the built-in one does.
    pub(crate) fn run_as(&mut self, user: &str) {
        let client = self.client(user, BUILT_IN_AGENT);
        let built_in = StatefulSetController::builder_with_clients(client.clone(), client);
        let built_in = built_in.clock(Arc::clone(self.plane.server().clock()));
        self.controllers
            .spawn(built_in.build().unwrap().run(std::future::pending()));
    }

    fn run_both(&mut self) {
        self.run_as(BUILT_IN_USER);
        let ours = self.builder(USER_DEFAULT).build().unwrap();
        self.controllers.spawn(ours.run(std::future::pending()));
    }

    fn builder(&self, user: &str) -> statefulset_controller::Builder {
        let client = self.client(user, "statefulset-controller-manager/0.1.0");
        let metrics = ControllerMetrics::default().fence(Arc::clone(&self.counted) as _);
        StatefulSetController::builder_with_clients(client.clone(), client)
            .namespace_selector(NamespaceSelector::default())
            .clock(Arc::clone(self.plane.server().clock()))
            .metrics(metrics)
    }

    fn client(&self, user: &str, agent: &'static str) -> RestClient {
        let client = self.user(user, agent).client();
        let service = service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        layered(service, &ClientOptions::default().qps(-1.0))
    }

    fn user(&self, user: &str, agent: &'static str) -> User {
        User::with_agent(&self.plane, user, agent)
    }

    pub(crate) async fn settle(&self) {
        tokio::time::sleep(SETTLED).await;
    }

    /// Creates a namespace, with this value of the label.
    pub(crate) async fn create_namespace(&self, name: &str, value: Option<&str>) {
        let namespace = json!({"metadata": {"name": name}});
        let namespaces = "/api/v1/namespaces";
        let created = self.admin.ask(Method::POST, namespaces, &namespace);
        created.await.unwrap();
        if let Some(value) = value {
            self.label(name, json!(value)).await;
        }
    }

    async fn create_set(&self, namespace: &str, replicas: u32) {
        let sets = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
        let set = manifests::web(replicas);
        self.admin.ask(Method::POST, &sets, &set).await.unwrap();
    }

    async fn patch_set(&self, namespace: &str, change: &Value) {
        let set = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/web");
        self.admin.ask(Method::PATCH, &set, change).await.unwrap();
    }

    pub(crate) async fn scale(&self, namespace: &str, replicas: u32) {
        let change = json!({"spec": {"replicas": replicas}});
        self.patch_set(namespace, &change).await;
    }

    async fn label(&self, namespace: &str, value: Value) {
        let selector = NamespaceSelector::default();
        let labels = json!({"metadata": {"labels": {selector.key(): value}}});
        let path = format!("/api/v1/namespaces/{namespace}");
        self.admin.ask(Method::PATCH, &path, &labels).await.unwrap();
    }

    /// Names and uids of a namespace's pods.
    pub(crate) async fn pods(&self, namespace: &str) -> Vec<[String; 2]> {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let pods = self.admin.ask(Method::GET, &path, &Value::Null);
        let pods = pods.await.unwrap();
        let pods = pods["items"].as_array().unwrap().iter();
        let fields = |pod: &Value| {
            ["name", "uid"].map(|field| pod["metadata"][field].as_str().unwrap().to_owned())
        };
        pods.map(fields).collect()
    }

    /// Forgets the writes so far.
    pub(crate) fn clear(&self) {
        self.plane.server().audit().clear();
    }

    /// Writes of a user that were stored in a namespace, without events.
    pub(crate) fn stored(&self, user: &str, namespace: &str) -> Vec<String> {
        self.writes(user, namespace, |entry| entry.code < 300)
    }

    /// Writes of a user that were denied in a namespace.
    fn denied(&self, user: &str, namespace: &str) -> Vec<String> {
        self.writes(user, namespace, |entry| entry.code == 403)
    }

    fn writes(
        &self,
        user: &str,
        namespace: &str,
        keep: impl Fn(&AuditEntry) -> bool,
    ) -> Vec<String> {
        let entries = self.plane.server().audit().entries();
        let own = entries.iter().filter(|entry| {
            let is_own = entry.user == user && entry.namespace == namespace;
            entry.is_write() && is_own && entry.resource != "events" && keep(entry)
        });
        let line = |entry: &AuditEntry| format!("{:?} {} {}", entry.verb, entry.path, entry.name);
        own.map(line).collect()
    }

    fn falls(&self) -> Vec<&'static str> {
        self.counted.falls.lock().unwrap().clone()
    }

    fn namespaces(&self) -> ServedNamespaces {
        *self.counted.namespaces.lock().unwrap()
    }

    /// Reasons of the events about a namespace.
    async fn events(&self, namespace: &str) -> Vec<String> {
        let path = "/api/v1/namespaces/default/events";
        let events = self.admin.ask(Method::GET, path, &Value::Null);
        let events = events.await.unwrap();
        let events = events["items"].as_array().unwrap().iter();
        let of_namespace = events.filter(|event| event["involvedObject"]["name"] == namespace);
        let mut reasons: Vec<String> = of_namespace
            .map(|event| event["reason"].as_str().unwrap().to_owned())
            .collect();
        reasons.sort_unstable();
        reasons
    }
}

#[tokio::test(start_paused = true)]
async fn each_namespace_is_served_by_one_controller() {
    let world = World::running().await;
    assert_eq!(world.pods(SERVED).await.len(), 2);
    assert_eq!(world.pods(OTHER).await.len(), 2);
    assert_eq!(world.stored(BUILT_IN_USER, SERVED), [""; 0]);
    assert_eq!(world.stored(USER_DEFAULT, OTHER), [""; 0]);
    assert_ne!(world.stored(USER_DEFAULT, SERVED), [""; 0]);
    assert_ne!(world.stored(BUILT_IN_USER, OTHER), [""; 0]);
    // The one without a fence of its own is denied; the other never tries.
    assert_ne!(world.denied(BUILT_IN_USER, SERVED), [""; 0]);
    assert_eq!(world.denied(USER_DEFAULT, OTHER), [""; 0]);
    let expected = ServedNamespaces {
        served: 1,
        waiting: 0,
    };
    assert_eq!(world.namespaces(), expected);
    assert_eq!(world.events(SERVED).await, ["FenceProved"]);
    assert_eq!(world.falls(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn label_hands_a_settled_set_over_and_back_without_a_write() {
    let world = World::running().await;
    let before = world.pods(OTHER).await;
    world.clear();
    world.label(OTHER, json!("true")).await;
    world.settle().await;
    assert_eq!(world.namespaces().served, 2);
    assert_eq!(world.pods(OTHER).await, before);
    assert_eq!(world.stored(USER_DEFAULT, OTHER), [""; 0]);

    world.scale(OTHER, 3).await;
    world.settle().await;
    assert_eq!(world.pods(OTHER).await.len(), 3);
    assert_eq!(world.stored(BUILT_IN_USER, OTHER), [""; 0]);
    let before = world.pods(OTHER).await;

    world.clear();
    world.label(OTHER, Value::Null).await;
    world.settle().await;
    world.scale(OTHER, 4).await;
    world.settle().await;
    assert_eq!(world.stored(USER_DEFAULT, OTHER), [""; 0]);
    assert_eq!(world.denied(USER_DEFAULT, OTHER), [""; 0]);
    let after = world.pods(OTHER).await;
    assert_eq!(after.len(), 4);
    assert_eq!(after[..3], before);
    assert_eq!(world.falls(), ["left"]);
    // The other namespace was never disturbed.
    assert_eq!(world.events(SERVED).await, ["FenceProved"]);
}

#[tokio::test(start_paused = true)]
async fn rollout_goes_on_after_a_hand_over_in_its_middle() {
    let world = World::running().await;
    world.scale(OTHER, 5).await;
    world.settle().await;
    let image = json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}});
    world.patch_set(OTHER, &image).await;
    tokio::time::sleep(STAGE * 5).await;
    world.label(OTHER, json!("true")).await;
    world.settle().await;
    assert_ne!(world.stored(USER_DEFAULT, OTHER), [""; 0]);
    let set = "/apis/apps/v1/namespaces/other/statefulsets/web";
    let set = world.admin.ask(Method::GET, set, &Value::Null);
    let status = &set.await.unwrap()["status"];
    assert_eq!(status["updatedReplicas"], 5);
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    // Each pod was replaced once.
    let created = |user: &str| {
        let writes = world.stored(user, OTHER);
        let created = writes
            .iter()
            .filter(|it| it.starts_with("Create") && it.contains("/pods "));
        created.count()
    };
    assert_eq!(created(BUILT_IN_USER) + created(USER_DEFAULT), 10);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_the_fence_is_proved() {
    let mut world = World::new().await;
    world.create_namespace(SERVED, Some("true")).await;
    world.create_set(SERVED, 2).await;
    world.run_both();
    world.settle().await;
    assert_eq!(world.stored(USER_DEFAULT, SERVED), [""; 0]);
    assert_eq!(world.namespaces().waiting, 1);
    // Without a fence the other controller makes the pods.
    let before = world.pods(SERVED).await;
    assert_eq!(before.len(), 2);

    let settings = FenceSettings::default();
    install_policies(&world.plane, &settings, &["mirror"]).await;
    world.scale(SERVED, 3).await;
    world.settle().await;
    assert_eq!(world.stored(USER_DEFAULT, SERVED), [""; 0], "half a fence");

    install_policies(&world.plane, &settings, &["fence"]).await;
    world.settle().await;
    world.clear();
    world.scale(SERVED, 4).await;
    world.settle().await;
    assert_eq!(world.stored(BUILT_IN_USER, SERVED), [""; 0]);
    let after = world.pods(SERVED).await;
    assert_eq!(after.len(), 4);
    assert_eq!(after[..2], before);
    assert_eq!(world.events(SERVED).await, ["FenceProved"]);
}

#[tokio::test(start_paused = true)]
async fn changed_fence_stops_all_writes_until_it_is_restored() {
    const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
    let changes = [
        (
            format!("{ADMISSION}/validatingadmissionpolicies/{MIRROR}"),
            json!({"spec": {"failurePolicy": "Ignore"}}),
            json!({"spec": {"failurePolicy": "Fail"}}),
        ),
        (
            format!("{ADMISSION}/validatingadmissionpolicybindings/{FENCE}"),
            json!({"spec": {"validationActions": ["Audit"]}}),
            json!({"spec": {"validationActions": ["Deny"]}}),
        ),
    ];
    let world = World::running().await;
    for (number, (path, change, restore)) in (1..).zip(changes) {
        world
            .admin
            .ask(Method::PATCH, &path, &change)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.clear();
        world.scale(SERVED, 2 + number).await;
        world.settle().await;
        assert_eq!(world.stored(USER_DEFAULT, SERVED), [""; 0], "{path}");
        assert_eq!(world.falls().len(), number as usize);
        assert_eq!(world.namespaces().waiting, 1);

        world
            .admin
            .ask(Method::PATCH, &path, &restore)
            .await
            .unwrap();
        world.settle().await;
        assert_eq!(world.pods(SERVED).await.len(), 2 + number as usize);
        assert_eq!(world.namespaces().served, 1);
    }
    assert_eq!(world.falls(), ["policy", "policy"]);
    let events = world.events(SERVED).await;
    let fallen = events.iter().filter(|reason| *reason == "FenceFallen");
    assert_eq!(fallen.count(), 2, "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn recreated_policy_is_proved_again() {
    let world = World::running().await;
    let path =
        format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/{FENCE}");
    let deleted = world.admin.ask(Method::DELETE, &path, &Value::Null);
    deleted.await.unwrap();
    world.settle().await;
    assert_eq!(world.falls(), ["policy"]);
    install_policies(&world.plane, &FenceSettings::default(), &["fence"]).await;
    world.settle().await;
    assert_eq!(world.namespaces().served, 1);
    world.clear();
    world.scale(SERVED, 3).await;
    world.settle().await;
    assert_ne!(world.stored(USER_DEFAULT, SERVED), [""; 0]);
}

/// Writes as a provider's controllers that share one user, which the fence doesn't deny.
async fn foreign_write(world: &World, method: Method, path: &str, body: &Value) {
    let provider = world.user("system:kube-controller-manager", BUILT_IN_AGENT);
    provider.ask(method, path, body).await.unwrap();
}

/// Checks that a namespace is not served for a while after a write of another controller.
async fn assert_stopped_for_a_while(world: &World) {
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.falls(), ["foreign"]);
    world.clear();
    world.scale(SERVED, 5).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(world.stored(USER_DEFAULT, SERVED), [""; 0]);
    world.settle().await;
    assert_eq!(world.pods(SERVED).await.len(), 5);
    assert_eq!(world.falls(), ["foreign"]);
    assert_eq!(world.namespaces().served, 1);
    // The second proof counts in the first one's event.
    let expected = ["FenceFallen", "FenceProved"];
    assert_eq!(world.events(SERVED).await, expected);
}

#[tokio::test(start_paused = true)]
async fn revision_of_another_controller_stops_the_namespace() {
    let world = World::running().await;
    let set = "/apis/apps/v1/namespaces/served/statefulsets/web";
    let set = world.admin.ask(Method::GET, set, &Value::Null).await;
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": true,
        "uid": set.unwrap()["metadata"]["uid"],
    });
    let revision = json!({
        "metadata": {"name": "web-1", "labels": {"app": "web"}, "ownerReferences": [owner]},
        "revision": 1, "data": {"spec": {"template": {"$patch": "replace"}}},
    });
    let revisions = "/apis/apps/v1/namespaces/served/controllerrevisions";
    foreign_write(&world, Method::POST, revisions, &revision).await;
    assert_stopped_for_a_while(&world).await;
}

#[tokio::test(start_paused = true)]
async fn status_of_another_controller_stops_the_namespace() {
    let world = World::running().await;
    let status = json!({"status": {"collisionCount": 5}});
    let path = "/apis/apps/v1/namespaces/served/statefulsets/web/status";
    foreign_write(&world, Method::PATCH, path, &status).await;
    assert_stopped_for_a_while(&world).await;
}

#[tokio::test(start_paused = true)]
async fn writes_of_users_and_other_controllers_stop_nothing() {
    let world = World::running().await;
    let pod = "/api/v1/namespaces/served/pods/web-0";
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    foreign_write(&world, Method::PATCH, pod, &labels).await;
    let annotations = json!({"metadata": {"annotations": {"a": "b"}}});
    world.patch_set(SERVED, &annotations).await;
    let deleted = world.admin.ask(Method::DELETE, pod, &Value::Null);
    deleted.await.unwrap();
    world.settle().await;
    assert_eq!(world.falls(), [""; 0]);
    assert_eq!(world.pods(SERVED).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn built_in_user_and_other_scopes_are_refused() {
    let world = World::new().await;
    install(&world.plane, &FenceSettings::default()).await;
    let ours = world.builder(BUILT_IN_USER).build().unwrap();
    let ended = ours.run(std::future::pending()).await;
    assert!(matches!(ended, Err(RunError::SameUser(_))), "{ended:?}");
    let builder = world.builder(USER_DEFAULT).namespace("served");
    let error = builder.build().err().unwrap();
    assert!(matches!(error, BuildError::SelectorWithOtherScope));
}
