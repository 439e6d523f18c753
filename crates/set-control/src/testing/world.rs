//! One set in an in-memory cluster: the production set and pod control, whose caches show every
//! write immediately.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::json::parse;
use kube_apimachinery::time::format_seconds;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use statefulset_client::backoff::NoJitter;
use statefulset_client::error::Error as ApiError;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::{EventRecorder, FakeRecorder};
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::Caches;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::{Pod, REVISION_LABEL};
use statefulset_controller_util::stateful_set::{PodTemplate, StatefulSet};
use statefulset_controller_util::testing::Call;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_history::fake::FakeHistory;
use statefulset_history::sort_controller_revisions;
use statefulset_pod_control::fake::FakeObjectManager;
use statefulset_pod_control::stateful_set_utils::NewPod;
use statefulset_pod_control::{ObjectManager, StatefulPodControl};

use super::counts::Counts;
use crate::fake::FakeStatusUpdater;
use crate::outcome::SyncOutcome;
use crate::stateful_set_control::{DefaultStatefulSetControl, StatefulSetControl as _};
use crate::waiting::Waiting;

/// Message of the failures that [`World::fail`] injects.
pub const INJECTED: &str = "injected failure";

/// Names a pod of a world's set: its name, its ordinal, or the pod itself.
pub trait PodId: Copy {
    /// Returns the pod's name.
    fn name(&self, set: &StatefulSet) -> String;
}

impl PodId for i32 {
    fn name(&self, set: &StatefulSet) -> String {
        format!("{}-{self}", set.name())
    }
}

impl PodId for &str {
    fn name(&self, _: &StatefulSet) -> String {
        (*self).to_owned()
    }
}

impl PodId for &String {
    fn name(&self, _: &StatefulSet) -> String {
        (*self).clone()
    }
}

impl PodId for &Arc<Pod> {
    fn name(&self, _: &StatefulSet) -> String {
        self.name.to_string()
    }
}

/// A check of a world's set and its objects.
pub type Invariants = fn(&World) -> Result<(), String>;

/// A set, its objects, and the control that moves them.
///
/// Methods that take a pod panic if it doesn't exist.
pub struct World {
    /// The test's copy of the set; every sync reads it again.
    pub set: StatefulSet,
    /// Current time; constant unless a test changes it.
    pub now: Timestamp,
    /// Random choices of a test.
    pub random: StdRng,
    /// Printed if the test fails.
    pub case: String,
    /// Pods, claims and sets.
    pub objects: Arc<FakeObjectManager>,
    /// Revisions.
    pub history: Arc<FakeHistory>,
    /// Events.
    pub recorder: Arc<FakeRecorder>,
    /// Creates, repairs and deletes the pods.
    pub pod_control: Arc<StatefulPodControl>,
    /// The set control under test.
    pub control: Arc<DefaultStatefulSetControl>,
    status: Arc<FakeStatusUpdater>,
}

impl World {
    /// Creates a cluster that stores the set.
    ///
    /// Upstream: `setupController`.
    pub fn new(set: StatefulSet, gates: FeatureGates) -> Self {
        let world = Self::without_set(set, gates);
        world.store();
        world
    }

    /// Creates a cluster without the set: its first status write stores it.
    pub fn without_set(set: StatefulSet, gates: FeatureGates) -> Self {
        let objects = Arc::new(FakeObjectManager::default());
        let recorder = Arc::new(FakeRecorder::new());
        let manager: Arc<dyn ObjectManager> = Arc::<FakeObjectManager>::clone(&objects);
        let events: Arc<dyn EventRecorder> = Arc::<FakeRecorder>::clone(&recorder);
        let pod_control = StatefulPodControl::new(manager, events, Arc::new(NoJitter), gates);
        let pod_control = Arc::new(pod_control);
        let tracker = Arc::clone(&objects.tracker);
        let history = Arc::new(FakeHistory {
            tracker: Arc::clone(&tracker),
            ..FakeHistory::default()
        });
        let status = Arc::new(FakeStatusUpdater::new(Arc::clone(&objects.sets), tracker));
        let control = control(&pod_control, &status, &history, gates);
        Self {
            set,
            now: "2026-03-01T12:00:00Z"
                .parse()
                .expect("the constant is a timestamp"),
            random: StdRng::seed_from_u64(1),
            case: String::new(),
            objects,
            history,
            recorder,
            pod_control,
            control,
            status,
        }
    }

    /// Returns the caches.
    pub fn caches(&self) -> Caches {
        Caches {
            pods: Arc::clone(self.objects.pods.cache()),
            claims: Arc::clone(self.objects.claims.cache()),
            sets: Arc::clone(&self.objects.sets),
            revisions: Arc::clone(self.history.revisions.cache()),
        }
    }

    /// Replaces the set control by one with other gates.
    pub fn restart(&mut self, gates: FeatureGates) {
        self.control = control(&self.pod_control, &self.status, &self.history, gates);
    }
}

fn control(
    pod_control: &Arc<StatefulPodControl>,
    status: &Arc<FakeStatusUpdater>,
    history: &Arc<FakeHistory>,
    gates: FeatureGates,
) -> Arc<DefaultStatefulSetControl> {
    Arc::new(DefaultStatefulSetControl::new(
        Arc::clone(pod_control),
        Arc::<FakeStatusUpdater>::clone(status),
        Arc::<FakeHistory>::clone(history),
        gates,
    ))
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.case.is_empty() {
            eprintln!("failed with {}", self.case);
        }
    }
}

/// The set.
impl World {
    /// Stores the test's copy of the set.
    pub fn store(&self) {
        self.objects.sets.add(self.set.clone());
    }

    /// Reads the set again, if it is stored.
    pub fn reread(&mut self) {
        let stored = self.objects.sets.get(self.set.namespace(), self.set.name());
        if let Some(stored) = stored {
            self.set = StatefulSet::clone(&stored);
        }
    }

    /// Changes the set and stores it.
    pub fn update(&mut self, change: impl FnOnce(&mut StatefulSet)) {
        change(&mut self.set);
        self.store();
    }

    /// Stores another set of this name with the current status.
    pub fn apply(&mut self, set: &Builder<StatefulSet>) {
        let status = Arc::clone(&self.set.status);
        self.set = set.build();
        self.update(|set| set.status = status);
    }

    /// Changes the number of replicas.
    pub fn scale(&mut self, replicas: i32) {
        self.update(|set| set.spec.replicas = replicas);
    }

    /// Changes the image of the set's first container.
    pub fn change_image(&mut self, image: &str) {
        self.update(|set| {
            edit_template(set, |template| {
                template["spec"]["containers"][0]["image"] = image.into();
            });
        });
    }

    /// Returns the counts in the status.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.set.status)
    }
}

/// Edits a set's pod template.
pub fn edit_template(set: &mut StatefulSet, edit: impl FnOnce(&mut Value)) {
    let template = set.spec.template.to_value();
    let mut template = template.expect("a test's template is JSON");
    edit(&mut template);
    set.spec.template = PodTemplate::from_value(&template);
}

/// Syncs.
impl World {
    /// Syncs the set with the pods that it selects.
    pub async fn sync(&mut self) -> SyncOutcome {
        let pods = self.pods();
        self.sync_pods(&pods).await
    }

    /// Syncs the set with these pods.
    pub async fn sync_pods(&mut self, pods: &[Arc<Pod>]) -> SyncOutcome {
        let (control, set) = (&self.control, &self.set);
        let outcome = match control.list_revisions(set) {
            Ok(revisions) => {
                let updated = control.update_stateful_set(set, revisions, pods, self.now);
                updated.await
            }
            Err(error) => error.into(),
        };
        self.reread();
        outcome
    }

    /// Runs a sync that must succeed, and returns the set's reason to wait.
    pub async fn step(&mut self) -> Option<Waiting> {
        let outcome = self.sync().await;
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        assert!(outcome.status.is_some(), "the sync has a status");
        outcome.waiting
    }

    /// Runs a sync that must fail, and returns its error.
    pub async fn sync_error(&mut self) -> String {
        let error = self.sync().await.error;
        error.expect("the sync fails").to_string()
    }

    /// Checks invariants of the set.
    ///
    /// # Errors
    ///
    /// The violation.
    pub fn check(&self, invariants: Invariants) -> Result<(), String> {
        invariants(self)
    }
}

/// Pods. Each change stores a new object, so lists from before keep the old one.
impl World {
    /// Returns the pods that the set selects, by ascending ordinal.
    pub fn pods(&self) -> Vec<Arc<Pod>> {
        self.objects.pods_of(&self.set)
    }

    /// Returns the names of these pods.
    pub fn pod_names(&self) -> Vec<String> {
        self.pods().iter().map(|pod| pod.name.to_string()).collect()
    }

    /// Returns a pod.
    pub fn pod(&self, pod: impl PodId) -> Arc<Pod> {
        let name = pod.name(&self.set);
        let cached = self.objects.pods.cache().get(self.set.namespace(), &name);
        cached.unwrap_or_else(|| panic!("pod {name} not found"))
    }

    /// Returns a pod's complete JSON.
    pub fn pod_json(&self, pod: impl PodId) -> Value {
        let name = pod.name(&self.set);
        let stored = self.objects.pods.json(self.set.namespace(), &name);
        stored.unwrap_or_else(|| panic!("pod {name} not found"))
    }

    /// Creates or replaces a pod.
    pub fn put_pod(&self, pod: &Builder<Pod>) -> Arc<Pod> {
        self.objects.pods.put(pod.json())
    }

    /// Removes a pod as if its deletion had ended.
    pub fn remove_pod(&self, pod: impl PodId) {
        let name = pod.name(&self.set);
        let removed = self.objects.pods.delete(self.set.namespace(), &name);
        removed.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Changes a pod's JSON and increments its resource version.
    pub fn change_pod(&self, pod: impl PodId, change: impl FnOnce(&mut Value)) {
        let mut json = self.pod_json(pod);
        let version = json["metadata"]["resourceVersion"].as_str();
        let version: u64 = version.and_then(|it| it.parse().ok()).unwrap_or(0);
        json["metadata"]["resourceVersion"] = (version + 1).to_string().into();
        change(&mut json);
        self.objects.pods.put(json);
    }

    /// Sets a pod's phase and keeps its conditions.
    ///
    /// Upstream: `setPodPending`, `setPodRunning`.
    pub fn set_phase(&self, pod: impl PodId, phase: &str) {
        self.change_pod(pod, |pod| pod["status"]["phase"] = phase.into());
    }

    /// Sets a pod's Ready condition and keeps its phase. The transition time is now unless the
    /// condition already has this status.
    ///
    /// Upstream: `setPodReadyCondition`.
    pub fn set_ready(&self, pod: impl PodId, ready: bool) {
        let condition = ready_condition(ready, self.now);
        self.change_pod(pod, |pod| {
            if pod["status"]["conditions"][0]["status"] != condition["status"] {
                pod["status"]["conditions"] = json!([condition]);
            }
        });
    }

    /// Makes a pod ready since a moment and keeps its phase.
    ///
    /// Upstream: `setPodAvailable`.
    pub fn set_ready_since(&self, pod: impl PodId, since: Timestamp) {
        let condition = ready_condition(true, since);
        self.change_pod(pod, |pod| pod["status"]["conditions"] = json!([condition]));
    }

    /// Makes a pod running, and ready for an hour.
    pub fn run(&self, pod: impl PodId) {
        let since = self.now - jiff::SignedDuration::from_hours(1);
        let status = json!({"phase": "Running", "conditions": [ready_condition(true, since)]});
        self.change_pod(pod, |pod| pod["status"] = status);
    }

    /// Replaces a pod with a terminating pod that runs and is ready. It has no revision.
    ///
    /// Upstream: `addTerminatingPod`.
    pub fn add_terminating_pod(&self, ordinal: i32) -> Arc<Pod> {
        let conditions = [ready_condition(true, self.now)];
        let pod = self
            .terminated_pod(ordinal)
            .uid(&format!("{}-uid", ordinal.name(&self.set)));
        let status = json!({"phase": "Running", "conditions": conditions});
        self.put_pod(&pod.with("status", status))
    }

    /// Replaces a pod with a terminating pod that has no other data, not even a uid.
    ///
    /// Upstream: `setPodTerminated`.
    pub fn set_terminated(&self, ordinal: i32) -> Arc<Pod> {
        self.put_pod(&self.terminated_pod(ordinal))
    }

    fn terminated_pod(&self, ordinal: i32) -> Builder<Pod> {
        let now = format_seconds(self.now);
        stateful_set_pod(&self.set, ordinal).with("metadata.deletionTimestamp", now)
    }
}

/// Returns the pod that a set wants for an ordinal, without uid, phase and revision.
///
/// Upstream: `newStatefulSetPod`.
pub fn stateful_set_pod(set: &StatefulSet, ordinal: i32) -> Builder<Pod> {
    let body = NewPod::new(set, "", ordinal.into()).body();
    let pod = body.and_then(|body| parse(&body));
    Builder::from_json(pod.expect("a test's template is JSON")).without_label(REVISION_LABEL)
}

fn ready_condition(ready: bool, since: Timestamp) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({"type": "Ready", "status": status, "lastTransitionTime": format_seconds(since)})
}

/// Claims, by name.
impl World {
    /// Returns all claims.
    pub fn claims(&self) -> Vec<Arc<Claim>> {
        self.objects.claims.cache().list()
    }

    /// Returns a claim's complete JSON.
    pub fn claim(&self, name: &str) -> Option<Value> {
        self.objects.claims.json(self.set.namespace(), name)
    }

    /// Returns the owners of an existing claim.
    pub fn owners_of_claim(&self, name: &str) -> Vec<Value> {
        let claim = self.claim(name);
        let claim = claim.unwrap_or_else(|| panic!("claim {name} not found"));
        let owners = claim["metadata"]["ownerReferences"].as_array();
        owners.cloned().unwrap_or_default()
    }

    /// Creates or replaces a claim.
    pub fn put_claim(&self, claim: &Builder<Claim>) {
        self.objects.claims.put(claim.json());
    }

    /// Removes a claim.
    pub fn remove_claim(&self, name: &str) {
        let removed = self.objects.claims.delete(self.set.namespace(), name);
        removed.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Revisions, events and calls.
impl World {
    /// Returns the set's revisions by ascending number.
    pub fn revisions(&self) -> Vec<Arc<ControllerRevision>> {
        let revisions = self.control.list_revisions(&self.set);
        let mut revisions = revisions.expect("a test's set has a selector");
        sort_controller_revisions(&mut revisions);
        revisions
    }

    /// Returns the names of these revisions.
    pub fn revision_names(&self) -> Vec<String> {
        let revisions = self.revisions();
        revisions.iter().map(|it| it.name.to_string()).collect()
    }

    /// Creates or replaces a revision.
    pub fn put_revision(&self, revision: &Builder<ControllerRevision>) -> Arc<ControllerRevision> {
        let json = serde_json::from_str(&revision.text());
        let json = json.expect("a revision is JSON");
        self.history.revisions.put(json)
    }

    /// Returns and clears the events.
    pub fn events(&self) -> Vec<String> {
        self.recorder.drain()
    }

    /// Returns the number of calls of a kind, including failed ones.
    pub fn requests(&self, call: Call) -> usize {
        self.objects.tracker.requests(call)
    }

    /// Returns the number of calls of a kind, and the maximum in parallel.
    pub fn parallel_requests(&self, call: Call) -> (usize, usize) {
        let tracker = &self.objects.tracker;
        (tracker.requests(call), tracker.parallel_max(call))
    }

    /// Fails one call of a kind, the first after `after` others, with [`INJECTED`].
    pub fn fail(&self, call: Call, after: usize) {
        self.fail_with(call, after, || {
            ApiError::api(500, "InternalError", INJECTED)
        });
    }

    /// Fails one call of a kind, the first after `after` others, with this error.
    pub fn fail_with(&self, call: Call, after: usize, failure: fn() -> ApiError) {
        self.objects.tracker.fail_after(call, after, failure);
    }
}
