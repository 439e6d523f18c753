//! Harness: a cluster whose nodes run pods, the controller, and user actions on sets.

use std::time::Duration;

use http::Method;
use integration::World;
use integration::manifests;
use integration::space::Space;
use integration::stateful_sets::{name, uid};
use kube_test_control_plane::actors::{
    ActorsConfig, GarbageCollectorConfig, KubeletConfig, PodBehaviour,
};
use kube_test_control_plane::audit::{AuditEntry, AuditLog, AuditMark, Settle};
use kube_test_control_plane::faults::{Faults, RequestMatcher};
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};
use statefulset_client::fake::CapturedLog;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};
use tracing::Level;

/// Duration of each pod stage: start, readiness and stop.
const STEP: Duration = Duration::from_secs(1);
/// Time limit for a set to complete: longer than the queue's longest delays.
const PATIENCE: Duration = Duration::from_secs(2 * 3600);
/// Time without writes after which a cluster counts as settled.
const QUIET: Duration = Duration::from_secs(30);

/// A cluster, the controller with its log, and a namespace.
pub(crate) struct Fixture {
    pub(crate) space: Space,
    world: World,
    log: CapturedLog,
}

/// Matches requests of the controller.
pub(crate) fn controller() -> RequestMatcher {
    RequestMatcher::any().user("system:serviceaccount:kube-system:statefulset-controller")
}

/// A set with this many pods, one claim per pod, and this image.
pub(crate) fn web(replicas: u32, image: &str) -> Value {
    let mut set = manifests::web(replicas);
    set["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
    set
}

/// Uid of the object's controller; empty if it has none.
pub(crate) fn owner(object: &Value) -> &str {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let controller = owners
        .into_iter()
        .flatten()
        .find(|it| it["controller"] == true);
    controller.map_or("", |owner| owner["uid"].as_str().unwrap_or_default())
}

/// Names and uids of objects.
pub(crate) fn identities(objects: &[Value]) -> Vec<(String, String)> {
    let both = |object: &Value| (name(object).to_owned(), uid(object).to_owned());
    objects.iter().map(both).collect()
}

/// Names of objects.
pub(crate) fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(name).collect()
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::with_collector_after(Duration::ZERO).await
    }

    /// Like [`Fixture::start`], with a garbage collector that is delayed by `delay`.
    pub(crate) async fn with_collector_after(delay: Duration) -> Self {
        let log = CapturedLog::at(Level::WARN);
        let pods = PodBehaviour::with_delays(STEP);
        let actors = ActorsConfig::all()
            .kubelet(KubeletConfig::new(pods))
            .garbage_collector(GarbageCollectorConfig::default().delay(delay));
        let world = World::with_nodes(actors, FeatureGates::default()).await;
        let space = world.namespace("scenario").await;
        Self { space, world, log }
    }

    pub(crate) fn faults(&self) -> &Faults {
        self.world.plane().server().faults()
    }

    fn audit(&self) -> &AuditLog {
        self.world.plane().server().audit()
    }

    /// Marks the current position in the audit log.
    pub(crate) fn mark(&self) -> AuditMark {
        self.audit().mark()
    }

    /// Waits until nothing but events is written.
    pub(crate) async fn settle(&self) {
        let events = RequestMatcher::any().resource("events").include_actors();
        let settle = Settle::quiet_for(QUIET).ignore(events);
        let settled = self.audit().settle(&settle).await;
        settled.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Creates a set, waits until it is complete and writes have stopped, and returns its uid.
    pub(crate) async fn bring_up(&self, set: &Value) -> String {
        let set = self.space.create(&STATEFUL_SETS, set).await;
        self.until_complete(name(&set)).await;
        self.settle().await;
        uid(&set).to_owned()
    }

    /// Waits until all pods of a set are available and of its newest revision.
    pub(crate) async fn until_complete(&self, set: &str) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let set = self.space.get(&STATEFUL_SETS, set).await;
            let status = &set["status"];
            let counted = ["replicas", "availableReplicas", "updatedReplicas"];
            let wanted = &set["spec"]["replicas"];
            if counted.iter().all(|member| status[member] == *wanted)
                && status["observedGeneration"] == set["metadata"]["generation"]
            {
                return;
            }
            let log = self.log.lines();
            let in_time = tokio::time::Instant::now() < deadline;
            assert!(in_time, "not complete: {status}\n{log:#?}");
            tokio::time::sleep(STEP).await;
        }
    }

    /// Deletes a set with this propagation policy, without waiting for the effects.
    pub(crate) async fn delete_set(&self, set: &str, policy: &str) {
        let path = STATEFUL_SETS.object_path(self.space.name(), set);
        let options = json!({"propagationPolicy": policy});
        let asked = self
            .space
            .ask(Method::DELETE, &path, "application/json", &options);
        asked.await.unwrap_or_else(|refused| panic!("{refused}"));
    }

    pub(crate) async fn list(&self, resource: &Resource) -> Vec<Value> {
        self.space.list(resource, "").await
    }

    pub(crate) async fn pods(&self) -> Vec<Value> {
        self.list(&PODS).await
    }

    pub(crate) async fn claims(&self) -> Vec<Value> {
        self.list(&PERSISTENT_VOLUME_CLAIMS).await
    }

    pub(crate) async fn revisions(&self) -> Vec<Value> {
        self.list(&CONTROLLER_REVISIONS).await
    }

    /// Messages of the warning events about a set.
    pub(crate) async fn warnings(&self) -> Vec<String> {
        let events = self.list(&EVENTS).await.into_iter();
        let warnings = events.filter(|event| event["type"] == "Warning");
        let text = |member: &Value| member.as_str().unwrap_or_default().to_owned();
        let line = |event: Value| text(&event["reason"]) + ": " + &text(&event["message"]);
        warnings.map(line).collect()
    }

    /// Warnings that the controller logged since the last call.
    pub(crate) fn take_log(&self) -> Vec<String> {
        self.log.take()
    }

    /// The controller's write requests since a mark, whether successful or not.
    fn asked(&self, mark: AuditMark, matcher: &RequestMatcher) -> Vec<AuditEntry> {
        let writes = self.audit().writes_since(mark, matcher);
        writes.unwrap_or_else(|forgotten| panic!("{forgotten}"))
    }

    /// The controller's pod writes since a mark, such as `delete web-1`.
    pub(crate) fn pod_writes(&self, mark: AuditMark) -> Vec<String> {
        let pods = controller().resource("pods").subresource("");
        let mut writes = self.asked(mark, &pods);
        writes.retain(|entry| (200..300).contains(&entry.code));
        let line = |entry: &AuditEntry| format!("{} {}", entry.verb.name(), entry.name);
        writes.iter().map(line).collect()
    }

    /// The controller's revision requests since a mark, such as `409 delete`.
    pub(crate) fn revision_requests(&self, mark: AuditMark) -> Vec<String> {
        let revisions = controller().resource("controllerrevisions");
        let line = |entry: &AuditEntry| format!("{} {}", entry.code, entry.verb.name());
        self.asked(mark, &revisions).iter().map(line).collect()
    }

    /// Checks that in one hour the controller sends one to ten write requests, and that all fail.
    pub(crate) async fn assert_only_failed_retries(&self) {
        let mark = self.mark();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let mut tries = self.asked(mark, &controller());
        tries.retain(|entry| entry.resource != "events");
        let lines: Vec<String> = tries.iter().map(AuditEntry::summary).collect();
        assert!((1..=10).contains(&lines.len()), "{lines:#?}");
        let failed = tries.iter().all(|entry| entry.code >= 400);
        assert!(failed, "{lines:#?}");
    }

    /// Checks that the controller writes nothing for an hour after a mark.
    pub(crate) async fn assert_no_writes_after(&self, mark: AuditMark) {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let written = self.audit().expect_no_writes(mark, &controller());
        written.unwrap_or_else(|finding| panic!("{finding}"));
    }

    /// Checks that two pods of the same name never ran at the same time.
    pub(crate) fn expect_no_violations(&self) {
        self.world.plane().invariants().expect_none();
    }
}

/// Matches the controller's writes of this kind.
pub(crate) fn write(verb: Verb, resource: &str) -> RequestMatcher {
    controller().verb(verb).resource(resource)
}
