//! A syncer with mocks that record their calls.

use std::sync::{Arc, Mutex};

use http::Response;
use jiff::Timestamp;
use kube::client::Body;
use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use serde_json::{Value, json};
use statefulset_client::backoff::SeededJitter;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::clock::FakeClock;
use statefulset_client::error::Error as ApiError;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::NoopRecorder;
use statefulset_client::rest::RestClient;
use statefulset_controller::metrics::{NoopSetMetrics, SetMetrics};
use statefulset_controller::{Error, SetSyncer, SyncerParts};
use statefulset_controller_util::consistency::{Caches, ConsistencyStore, NoopConsistencyStore};
use statefulset_controller_util::controller_ref_manager::MockSetReader;
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::pod_control::MockPodControl;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_set_control::{MockStatefulSetControl, SyncOutcome};
use tower::{BoxError, service_fn};

/// The recorded calls in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn push(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    /// Takes the calls recorded so far.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Dependencies of a syncer, with responses set by the tests.
pub(crate) struct Fixture {
    pub(crate) caches: Caches,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) log: Log,
    /// Result of a live read of the set; `None` returns the cached one.
    pub(crate) live: Option<Result<StatefulSet, fn() -> ApiError>>,
    /// Error of a pod's patch.
    pub(crate) patch_failure: Option<fn() -> ApiError>,
    pub(crate) consistency: Arc<dyn ConsistencyStore>,
    pub(crate) metrics: Arc<dyn SetMetrics>,
}

impl Default for Fixture {
    fn default() -> Self {
        Self {
            caches: Caches::default(),
            clock: Arc::new(FakeClock::default()),
            log: Log::default(),
            live: None,
            patch_failure: None,
            consistency: Arc::new(NoopConsistencyStore),
            metrics: Arc::new(NoopSetMetrics),
        }
    }
}

/// A client for which every request fails.
fn no_server() -> RestClient {
    RestClient::from_service(service_fn(|_| async {
        Err::<Response<Body>, BoxError>("no server".into())
    }))
}

impl Fixture {
    /// Syncs the set `ns/web` once; the set control returns `outcome`.
    pub(crate) async fn sync(
        &self,
        outcome: impl Fn() -> SyncOutcome + Send + Sync + 'static,
    ) -> Result<SyncOutcome, Error> {
        let parts = SyncerParts::new(
            self.caches.clone(),
            &no_server(),
            Arc::new(NoopRecorder),
            Arc::clone(&self.clock) as _,
            Arc::new(SeededJitter::new(1)),
            FeatureGates::default(),
        );
        let parts = parts
            .reader(Arc::new(self.reader()))
            .pod_control(Arc::new(self.pod_control()))
            .set_control(Arc::new(self.set_control(outcome)))
            .consistency(Arc::clone(&self.consistency))
            .metrics(Arc::clone(&self.metrics));
        SetSyncer::new(parts).sync(&key()).await
    }

    /// Syncs once with an empty outcome.
    pub(crate) async fn sync_quietly(&self) -> Result<SyncOutcome, Error> {
        self.sync(SyncOutcome::default).await
    }

    fn reader(&self) -> MockSetReader {
        let (log, live) = (self.log.clone(), self.live.clone());
        let sets = Arc::clone(&self.caches.sets);
        let mut reader = MockSetReader::new();
        reader.expect_read_stateful_set().returning(move |key| {
            log.push(format!("read {key}"));
            match &live {
                None => Ok(StatefulSet::clone(
                    &sets.get(key.namespace(), key.name()).unwrap(),
                )),
                Some(Ok(set)) => Ok(set.clone()),
                Some(Err(error)) => Err(error()),
            }
        });
        reader
    }

    fn pod_control(&self) -> MockPodControl {
        let (log, failure) = (self.log.clone(), self.patch_failure);
        let mut pods = MockPodControl::new();
        pods.expect_patch_pod().returning(move |pod, patch| {
            let patch: Value = serde_json::from_str(&patch).unwrap();
            let released = patch.to_string().contains("$patch");
            log.push(format!(
                "{} {}",
                if released { "release" } else { "adopt" },
                pod.name()
            ));
            failure.map_or(Ok(()), |error| Err(error()))
        });
        pods
    }

    fn set_control(
        &self,
        outcome: impl Fn() -> SyncOutcome + Send + Sync + 'static,
    ) -> MockStatefulSetControl {
        let mut control = MockStatefulSetControl::new();
        let revisions = Arc::clone(&self.caches.revisions);
        control
            .expect_list_revisions()
            .returning(move |_| Ok(revisions.list()));
        let log = self.log.clone();
        control
            .expect_adopt_orphan_revisions()
            .returning(move |_, revisions| {
                let orphans = revisions.iter().filter(|it| it.controller.is_none());
                let names: Vec<_> = orphans.map(|revision| &*revision.name).collect();
                log.push(format!("adopt revisions {}", names.join(" ")));
                Ok(())
            });
        let log = self.log.clone();
        control
            .expect_update_stateful_set()
            .returning(move |set, _, pods, now| {
                let names: Vec<_> = pods.iter().map(|pod| &*pod.name).collect();
                let at = now.as_second();
                log.push(format!(
                    "update {} with [{}] at {at}",
                    set.name(),
                    names.join(" ")
                ));
                outcome()
            });
        control
    }

    pub(crate) fn add_set(&self, change: impl FnOnce(&mut Value)) {
        self.caches.sets.add(set(change));
    }

    pub(crate) fn add_pod(&self, pod: Pod) {
        self.caches.pods.add(pod);
    }

    pub(crate) fn add_revision(&self, name: &str, owned: bool) {
        self.caches.revisions.add(ControllerRevision {
            name: name.into(),
            namespace: "ns".into(),
            controller: owned.then(reference),
            ..ControllerRevision::default()
        });
    }
}

pub(crate) fn key() -> ObjectKey {
    ObjectKey::new("ns", "web")
}

/// The set `ns/web`, which selects `app: web`, with a change.
pub(crate) fn set(change: impl FnOnce(&mut Value)) -> StatefulSet {
    let mut json = json!({
        "metadata": {"name": "web", "namespace": "ns", "uid": "web-uid", "resourceVersion": "1"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
        },
    });
    change(&mut json);
    StatefulSet::decode(&json.to_string()).unwrap()
}

fn reference() -> OwnerReference {
    OwnerReference::new_controller("apps/v1", "StatefulSet", "web", "web-uid")
}

/// A pod that the set's selector selects, without a controller.
pub(crate) fn orphan(name: &str) -> Pod {
    let json = json!({"metadata": {
        "name": name, "namespace": "ns", "uid": format!("{name}-uid"), "labels": {"app": "web"},
    }});
    Pod::decode(&json.to_string()).unwrap()
}

/// The same pod, controlled by the set.
pub(crate) fn owned(name: &str) -> Pod {
    Pod {
        controller: Some(Arc::new(reference())),
        ..orphan(name)
    }
}

/// The same pod without labels.
pub(crate) fn unlabelled(pod: Pod) -> Pod {
    Pod {
        labels: serde_json::from_str("{}").unwrap(),
        ..pod
    }
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn not_found() -> ApiError {
    ApiError::api(404, "NotFound", "not found")
}

pub(crate) fn internal_error() -> ApiError {
    ApiError::api(500, "InternalError", "boom")
}
