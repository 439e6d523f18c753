//! Pod controls for tests, with in-memory objects or with a fake API that records requests.

use std::sync::Arc;

use statefulset_client::backoff::NoJitter;
use statefulset_client::cache::indexer::{CachedObject as _, Indexer};
use statefulset_client::config::{ClientOptions, layered};
use statefulset_client::error::Error as ApiError;
use statefulset_client::fake::{Action, FakeClientset, FaultError, FaultRule, Verb};
use statefulset_client::recorder::{EventRecorder, FakeRecorder};
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS};
use statefulset_client::rest::RestClient;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::consistency::ConsistencyStore;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::WriteLog;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::tracked_client::TrackedClient;

use crate::fake::FakeObjectManager;
use crate::stateful_pod_control::{ObjectManager, RealObjectManager, StatefulPodControl};
use crate::stateful_set_utils::PodSlot;
use crate::stateful_set_utils::ordinal;

/// Plural resource name of claims.
pub(crate) const CLAIMS: &str = "persistentvolumeclaims";

/// A pod control with in-memory objects.
pub(crate) struct InMemory {
    pub(crate) objects: Arc<FakeObjectManager>,
    pub(crate) recorder: Arc<FakeRecorder>,
    pub(crate) control: StatefulPodControl,
}

pub(crate) fn in_memory() -> InMemory {
    let objects = Arc::new(FakeObjectManager::default());
    let manager: Arc<dyn ObjectManager> = Arc::<FakeObjectManager>::clone(&objects);
    let (recorder, control) = control_over(manager);
    InMemory {
        objects,
        recorder,
        control,
    }
}

/// A pod control with a fake API and a cache of claims that the test fills.
pub(crate) struct OverApi {
    pub(crate) api: FakeClientset,
    pub(crate) claims: Arc<Indexer<Claim>>,
    pub(crate) recorder: Arc<FakeRecorder>,
    pub(crate) control: StatefulPodControl,
}

pub(crate) fn over_api() -> OverApi {
    over_api_reporting_to(Arc::new(WriteLog::default()))
}

pub(crate) fn over_api_reporting_to(consistency: Arc<dyn ConsistencyStore>) -> OverApi {
    let api = FakeClientset::new();
    let client = api.rest_client();
    over_client(api, client, consistency)
}

/// A pod control whose requests wait for the tokens of a rate limit without bursts.
pub(crate) fn over_limited_api(qps: f64) -> OverApi {
    let api = FakeClientset::new();
    let options = ClientOptions {
        qps,
        burst: 1,
        ..ClientOptions::default()
    };
    let client = layered(api.clone(), &options);
    over_client(api, client, Arc::new(WriteLog::default()))
}

fn over_client(
    api: FakeClientset,
    client: RestClient,
    consistency: Arc<dyn ConsistencyStore>,
) -> OverApi {
    let claims = Arc::new(Indexer::new());
    let client = TrackedClient::new(client, consistency);
    let manager = RealObjectManager::new(client, Arc::clone(&claims));
    let (recorder, control) = control_over(Arc::new(manager));
    OverApi {
        api,
        claims,
        recorder,
        control,
    }
}

fn control_over(objects: Arc<dyn ObjectManager>) -> (Arc<FakeRecorder>, StatefulPodControl) {
    let recorder = Arc::new(FakeRecorder::new());
    let events: Arc<dyn EventRecorder> = Arc::<FakeRecorder>::clone(&recorder);
    let control = StatefulPodControl::new(objects, events, Arc::new(NoJitter));
    (recorder, control)
}

impl OverApi {
    /// Stores a set in the API for live reads.
    pub(crate) fn store_set(&self, set: &StatefulSet) {
        let text = set.with_status(&set.status).expect("a status is JSON");
        self.api.load(&STATEFUL_SETS, text);
    }

    /// Adds a claim to the API and to the cache.
    pub(crate) fn load_claim(&self, claim: &Builder<Claim>) {
        self.api.load(&PERSISTENT_VOLUME_CLAIMS, claim.text());
        self.claims.add(claim.build());
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
    pub(crate) fn fail(&self, verb: Verb, resource: &str, times: u32, error: FaultError) {
        self.api.fail(FaultRule::new(verb, resource, times, error));
    }

    /// Returns the requests so far, as `verb resource name`.
    pub(crate) fn requests(&self) -> Vec<String> {
        let line = |action: Action| format!("{} {} {}", action.verb, action.resource, action.name);
        self.api.actions().into_iter().map(line).collect()
    }

    /// Returns the body of a verb's only call.
    pub(crate) fn sent(&self, verb: Verb, resource: &str) -> serde_json::Value {
        let concerned = |action: &Action| action.verb == verb && action.resource == resource;
        let calls: Vec<Action> = self.api.actions().into_iter().filter(concerned).collect();
        assert_eq!(calls.len(), 1, "{verb} {resource}");
        calls[0].json()
    }
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
