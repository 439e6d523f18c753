//! Pod controls for tests, with in-memory objects or with a fake API that records requests.

use std::sync::Arc;

use serde_json::Value;
use statefulset_client::backoff::NoJitter;
use statefulset_client::cache::indexer::{CachedObject as _, Indexer};
use statefulset_client::config::{ClientOptions, layered};
use statefulset_client::error::Error as ApiError;
use statefulset_client::fake::{Action, CallError, CallFault, FakeClientset, Verb};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::{EventRecorder, FakeRecorder};
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS};
use statefulset_client::rest::RestClient;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::ConsistencyStore;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::{Builder, NAMESPACE};
use statefulset_controller_util::testing::{Call, WriteLog};
use statefulset_controller_util::tracked_client::TrackedClient;

use crate::fake::FakeObjectManager;
use crate::stateful_pod_control::{ObjectManager, RealObjectManager, StatefulPodControl};
use crate::stateful_set_utils::PodSlot;
use crate::stateful_set_utils::ordinal;

/// Plural resource name of claims.
pub(crate) const CLAIMS: &str = "persistentvolumeclaims";

/// A pod control with in-memory objects.
pub(crate) struct World {
    pub(crate) objects: Arc<FakeObjectManager>,
    pub(crate) recorder: Arc<FakeRecorder>,
    pub(crate) control: StatefulPodControl,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_gates(FeatureGates::default())
    }

    pub(crate) fn with_gates(gates: FeatureGates) -> Self {
        let objects = Arc::new(FakeObjectManager::default());
        let manager: Arc<dyn ObjectManager> = Arc::<FakeObjectManager>::clone(&objects);
        let (recorder, control) = control_over(manager, gates);
        Self {
            objects,
            recorder,
            control,
        }
    }

    /// Stores a set for live reads.
    pub(crate) fn put_set(&self, set: &StatefulSet) {
        self.objects.sets.add(set.clone());
    }

    /// Returns a claim's complete JSON.
    pub(crate) fn claim(&self, name: &str) -> Option<Value> {
        self.objects.claims.json(NAMESPACE, name)
    }

    /// Creates or replaces a claim.
    pub(crate) fn put_claim(&self, claim: &Builder<Claim>) {
        self.objects.claims.put(claim.json());
    }

    /// Creates or replaces a pod.
    pub(crate) fn put_pod(&self, pod: &Builder<Pod>) {
        self.objects.pods.put(pod.json());
    }

    /// Returns a pod's complete JSON.
    pub(crate) fn pod(&self, name: &str) -> Option<Value> {
        self.objects.pods.json(NAMESPACE, name)
    }

    /// Returns and clears the events.
    pub(crate) fn events(&self) -> Vec<String> {
        self.recorder.drain()
    }

    /// Returns the number of calls of a kind, including failed ones.
    pub(crate) fn requests(&self, call: Call) -> usize {
        self.objects.tracker.requests(call)
    }

    /// Fails one call of a kind, the first after `after` others.
    pub(crate) fn fail(&self, call: Call, after: usize) {
        self.fail_with(call, after, boom);
    }

    /// Fails one call of a kind, the first after `after` others, with this error.
    pub(crate) fn fail_with(&self, call: Call, after: usize, failure: fn() -> ApiError) {
        self.objects.tracker.fail_after(call, after, failure);
    }
}

/// A pod control with a fake API and a cache of claims that the test fills.
pub(crate) struct ApiWorld {
    pub(crate) api: FakeClientset,
    /// The cache.
    pub(crate) claims: Arc<Indexer<Claim>>,
    pub(crate) recorder: Arc<FakeRecorder>,
    pub(crate) control: StatefulPodControl,
}

impl ApiWorld {
    pub(crate) fn new() -> Self {
        Self::reporting_to(Arc::new(WriteLog::default()))
    }

    pub(crate) fn reporting_to(consistency: Arc<dyn ConsistencyStore>) -> Self {
        let api = FakeClientset::new();
        let client = api.rest_client();
        Self::over_client(api, client, consistency)
    }

    /// A pod control whose requests wait for the tokens of a rate limit without bursts.
    pub(crate) fn limited(qps: f64) -> Self {
        let api = FakeClientset::new();
        let options = ClientOptions::default().qps(qps).burst(1);
        let client = layered(api.clone(), &options);
        Self::over_client(api, client, Arc::new(WriteLog::default()))
    }

    fn over_client(
        api: FakeClientset,
        client: RestClient,
        consistency: Arc<dyn ConsistencyStore>,
    ) -> Self {
        let claims = Arc::new(Indexer::new());
        let client = TrackedClient::new(client, consistency);
        let manager = RealObjectManager::new(client, Arc::clone(&claims));
        let (recorder, control) = control_over(Arc::new(manager), FeatureGates::default());
        Self {
            api,
            claims,
            recorder,
            control,
        }
    }

    /// Stores a set for live reads.
    pub(crate) fn put_set(&self, set: &StatefulSet) {
        let text = set.with_status(&set.status).expect("a status is JSON");
        self.api.load(&STATEFUL_SETS, text);
    }

    /// Stores a pod.
    pub(crate) fn put_pod(&self, pod: &Builder<Pod>) {
        self.api.load(&PODS, pod.text());
    }

    /// Stores a claim, also in the cache.
    pub(crate) fn put_claim(&self, claim: &Builder<Claim>) {
        self.api.load(&PERSISTENT_VOLUME_CLAIMS, claim.text());
        self.claims.add(claim.build());
    }

    /// Returns and clears the events.
    pub(crate) fn events(&self) -> Vec<String> {
        self.recorder.drain()
    }

    /// Makes the cache show each claim written from now on.
    pub(crate) fn show_written_claims(&self) {
        for verb in [Verb::Create, Verb::Update] {
            let claims = Arc::clone(&self.claims);
            self.api.react(verb, CLAIMS, move |action| {
                let claim =
                    Claim::decode(&action.body).expect("the body of a claim's update is a claim");
                claims.update(claim);
                None
            });
        }
    }

    /// Fails a verb's next calls.
    pub(crate) fn fail(&self, verb: Verb, resource: &str, times: u32, error: CallError) {
        self.api.fail(CallFault::new(verb, resource, times, error));
    }

    /// Returns the requests so far, as `verb resource name`.
    pub(crate) fn requests(&self) -> Vec<String> {
        let line = |action: Action| format!("{} {} {}", action.verb, action.resource, action.name);
        self.api.actions().into_iter().map(line).collect()
    }

    /// Returns the body of a verb's only call.
    pub(crate) fn sent(&self, verb: Verb, resource: &str) -> Value {
        let concerned = |action: &Action| action.verb == verb && action.resource == resource;
        let calls: Vec<Action> = self.api.actions().into_iter().filter(concerned).collect();
        assert_eq!(calls.len(), 1, "{verb} {resource}");
        calls[0].json()
    }
}

fn control_over(
    objects: Arc<dyn ObjectManager>,
    gates: FeatureGates,
) -> (Arc<FakeRecorder>, StatefulPodControl) {
    let recorder = Arc::new(FakeRecorder::new());
    let events: Arc<dyn EventRecorder> = Arc::<FakeRecorder>::clone(&recorder);
    let control = StatefulPodControl::new(objects, events, Arc::new(NoJitter), gates);
    (recorder, control)
}

/// The slot of an existing pod.
pub(crate) fn existing(pod: &Builder<Pod>) -> PodSlot {
    let pod = pod.build();
    let ordinal = ordinal(&pod.name).expect("the pod has an ordinal");
    PodSlot::Existing(ordinal, Arc::new(pod))
}

pub(crate) fn boom() -> ApiError {
    ApiError::api(500, "InternalError", "boom")
}
