//! Syncs of a set with thousands of claim templates and volumes.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use kube_apimachinery::object_key::ObjectKey;
use serde_json::{Value, json};
use statefulset_client::backoff::NoJitter;
use statefulset_client::cache::indexer::{CachedObject, Indexer};
use statefulset_client::clock::FakeClock;
use statefulset_client::fake::FakeClientset;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::FakeRecorder;
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};
use statefulset_controller::{SetSyncer, SyncerParts};
use statefulset_controller_util::consistency::Caches;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::report::{Report, Row};
use crate::timing::microseconds;

/// Numbers of claim templates of the measured sets; volumes are ten times that.
const CLAIM_TEMPLATES: [usize; 3] = [500, 1_000, 2_000];
/// Time of every sync.
const NOW: &str = "2026-03-01T12:00:00Z";

/// Measures one pod with its claims.
pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    for templates in CLAIM_TEMPLATES {
        measure_one(report, &runtime, templates)?;
    }
    Ok(())
}

fn measure_one(report: &mut Report, runtime: &Runtime, templates: usize) -> anyhow::Result<()> {
    let volumes = templates * 10;
    let api = FakeClientset::new();
    let set = set(templates, volumes).to_string();
    api.load(&STATEFUL_SETS, set.as_str());
    let baseline = microseconds(|| drop(serde_json::from_str::<Value>(&set)));
    let mut row = |what: &str, value: f64| {
        report.add(Row {
            what: format!("{templates} claim templates, {volumes} volumes: {what}"),
            value: value / 1e3,
            baseline: baseline / 1e3,
            baseline_name: "read the set's JSON",
            unit: "ms",
            bound: None,
        });
    };

    let _guard = runtime.enter();
    let start = Instant::now();
    let requests = create(&api, runtime)?;
    row(
        &format!("the first sync, with {requests} requests"),
        start.elapsed().as_secs_f64() * 1e6,
    );
    ensure!(
        requests > templates,
        "the first sync made {requests} requests"
    );

    for (what, pod_status) in [
        ("a sync of the settled set (aim: 100 ms)", running()),
        (
            "a sync with its pod pending (aim: 100 ms)",
            json!({"phase": "Pending"}),
        ),
    ] {
        let syncer = quiet_syncer(&api, runtime, &pod_status).context(what)?;
        row(
            what,
            microseconds(|| {
                black_box(runtime.block_on(syncer.sync(&key())).is_ok());
            }),
        );
    }
    Ok(())
}

/// Returns the repeatable sync of a settled set with this many claim templates, and ten times as
/// many volumes.
pub(crate) fn settled(
    runtime: Runtime,
    templates: usize,
) -> anyhow::Result<Box<dyn FnMut() -> bool>> {
    let syncer = {
        let _guard = runtime.enter();
        let api = FakeClientset::new();
        api.load(&STATEFUL_SETS, set(templates, templates * 10).to_string());
        create(&api, &runtime)?;
        quiet_syncer(&api, &runtime, &running())?
    };
    Ok(Box::new(move || {
        runtime.block_on(syncer.sync(&key())).is_ok()
    }))
}

/// Runs the first sync, which creates the revision, the claims and the pod. Returns the number of
/// its requests.
fn create(api: &FakeClientset, runtime: &Runtime) -> anyhow::Result<usize> {
    let first = syncer(api, |_| {})?;
    runtime.block_on(first.sync(&key()))?;
    Ok(api.actions().len())
}

/// Returns a syncer whose syncs write nothing.
fn quiet_syncer(
    api: &FakeClientset,
    runtime: &Runtime,
    status: &Value,
) -> anyhow::Result<SetSyncer> {
    // The status is written once.
    let writing = syncer(api, |pod| pod["status"] = status.clone())?;
    runtime.block_on(writing.sync(&key()))?;
    let quiet = syncer(api, |pod| pod["status"] = status.clone())?;
    api.clear_actions();
    runtime.block_on(quiet.sync(&key()))?;
    ensure!(api.actions().is_empty(), "the sync writes");
    Ok(quiet)
}

fn key() -> ObjectKey {
    ObjectKey::new("ns", "web")
}

fn running() -> Value {
    let since = "2026-03-01T11:00:00Z";
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
    json!({"phase": "Running", "conditions": [ready]})
}

fn set(templates: usize, volumes: usize) -> Value {
    let claim = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": format!("claim-{number}")},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Pending"},
        })
    };
    let volume = |number: usize| json!({"name": format!("volume-{number}"), "emptyDir": {}});
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "ns", "uid": "web-uid", "resourceVersion": "1", "generation": 1},
        "spec": {
            "replicas": 1, "serviceName": "web", "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{"name": "main", "image": "registry.example/app:1", "resources": {}}],
                    "volumes": (0..volumes).map(volume).collect::<Vec<_>>(),
                },
            },
            "volumeClaimTemplates": (0..templates).map(claim).collect::<Vec<_>>(),
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"},
        },
        "status": {"replicas": 0, "availableReplicas": 0},
    })
}

/// Creates a syncer over caches with the API's objects and the changed pod.
fn syncer(api: &FakeClientset, change_pod: impl Fn(&mut Value)) -> anyhow::Result<SetSyncer> {
    let caches = Caches {
        sets: filled(api, &STATEFUL_SETS, |_| {})?,
        revisions: filled(api, &CONTROLLER_REVISIONS, |_| {})?,
        pods: filled(api, &PODS, change_pod)?,
        claims: filled(api, &PERSISTENT_VOLUME_CLAIMS, |_| {})?,
    };
    let now: Timestamp = NOW.parse()?;
    Ok(SetSyncer::new(SyncerParts::new(
        caches,
        &api.rest_client(),
        Arc::new(FakeRecorder::new()),
        Arc::new(FakeClock::new(now)),
        Arc::new(NoJitter),
        FeatureGates::default(),
    )))
}

fn filled<K: CachedObject>(
    api: &FakeClientset,
    resource: &Resource,
    change: impl Fn(&mut Value),
) -> anyhow::Result<Arc<Indexer<K>>> {
    let mut objects = Vec::new();
    for text in api.raw_objects(resource) {
        let mut object: Value = serde_json::from_str(&text)?;
        let name = object["metadata"]["name"].as_str().context("a name")?;
        object["metadata"]["uid"] = json!(format!("{name}-uid"));
        object["metadata"]["resourceVersion"] = json!("1");
        change(&mut object);
        objects.push(Arc::new(K::decode(&object.to_string())?));
    }
    let indexer = Indexer::new();
    indexer.replace(objects, "1");
    Ok(Arc::new(indexer))
}
