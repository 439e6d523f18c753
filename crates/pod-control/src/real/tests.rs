//! Pods and claims over an object manager in memory, and over a fake API where requests count.

use statefulset_client::backoff::NoJitter;
use statefulset_client::fake::{Action, FakeClientset, Verb as ApiVerb};
use statefulset_client::indexer::Indexer;
use statefulset_client::recorder::FakeRecorder;
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS};
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::testing::WriteLog;
use statefulset_controller_util::testing::builders::{self, Builder, owner_reference};

use super::*;
use crate::fake::FakeObjectManager;
use crate::identity::Ordinal;
use crate::object_manager::RealObjectManager;

mod create;
mod delete;
mod retain;
mod update;

/// A pod control over objects in memory.
struct InMemory {
    objects: Arc<FakeObjectManager>,
    recorder: Arc<FakeRecorder>,
    control: RealStatefulPodControl,
}

fn in_memory() -> InMemory {
    let objects = Arc::new(FakeObjectManager::default());
    let recorder = Arc::new(FakeRecorder::new());
    let manager: Arc<dyn ObjectManager> = Arc::<FakeObjectManager>::clone(&objects);
    let events: Arc<dyn EventRecorder> = Arc::<FakeRecorder>::clone(&recorder);
    InMemory {
        objects,
        recorder,
        control: RealStatefulPodControl::new(manager, events, Arc::new(NoJitter)),
    }
}

/// A pod control over a fake API, whose cache of claims a test fills.
struct OverApi {
    api: FakeClientset,
    claims: Arc<Indexer<Claim>>,
    recorder: Arc<FakeRecorder>,
    control: RealStatefulPodControl,
}

fn over_api() -> OverApi {
    let api = FakeClientset::new();
    let claims = Arc::new(Indexer::new());
    let recorder = Arc::new(FakeRecorder::new());
    let manager = RealObjectManager::new(
        api.rest_client(),
        Arc::clone(&claims),
        Arc::new(WriteLog::default()),
    );
    let events: Arc<dyn EventRecorder> = Arc::<FakeRecorder>::clone(&recorder);
    OverApi {
        api,
        claims,
        recorder,
        control: RealStatefulPodControl::new(Arc::new(manager), events, Arc::new(NoJitter)),
    }
}

impl OverApi {
    /// Puts a claim into the API and into the cache.
    fn load_claim(&self, claim: &Builder<Claim>) {
        self.api.load(&PERSISTENT_VOLUME_CLAIMS, claim.text());
        self.claims.add(claim.build());
    }

    fn requests(&self) -> Vec<String> {
        let line = |action: Action| format!("{} {} {}", action.verb, action.resource, action.name);
        self.api.actions().into_iter().map(line).collect()
    }
}

/// Two replicas, one claim template each.
fn web() -> Builder<StatefulSet> {
    builders::set("web").replicas(2).claim_template("data")
}

fn existing(pod: &Builder<Pod>) -> PodSlot {
    let pod = pod.build();
    let ordinal = crate::identity::ordinal(&pod.name).unwrap();
    PodSlot::Existing(ordinal, Arc::new(pod))
}

fn new_pod(set: &StatefulSet, ordinal: i32) -> NewPod {
    NewPod::new(set, "web-1", Ordinal::from(ordinal))
}

fn set_owner() -> serde_json::Value {
    owner_reference(("apps/v1", "StatefulSet"), "web", "web-uid", Some(true))
}

fn foreign_owner() -> serde_json::Value {
    owner_reference(("example.com/v1", "Backup"), "b", "b-uid", Some(true))
}

fn boom() -> ApiError {
    ApiError::api(500, "InternalError", "boom")
}

fn already_exists() -> ApiError {
    ApiError::api(409, "AlreadyExists", "taken")
}

/// The owners of a claim, by name.
fn owners(json: &serde_json::Value) -> Vec<String> {
    let references = json["metadata"]["ownerReferences"].as_array();
    let name = |reference: &serde_json::Value| reference["name"].as_str().unwrap().to_owned();
    references.into_iter().flatten().map(name).collect()
}
