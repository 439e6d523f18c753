//! Settled clusters of upstream: a controller that starts on them writes nothing, and computes
//! the update revision of each set's status.

pub mod shapes;

use std::sync::Arc;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;
use statefulset_client::backoff::NoJitter;
use statefulset_client::cache::indexer::{CachedObject, Indexer};
use statefulset_client::clock::FakeClock;
use statefulset_client::fake::{FakeClientset, Verb};
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::recorder::FakeRecorder;
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};
use statefulset_controller::{SetSyncer, SyncerParts};
use statefulset_controller_util::consistency::Caches;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::report::Verdict;

/// Time between the last change and the controller's start.
const LATER: SignedDuration = SignedDuration::from_hours(1);

#[derive(Deserialize)]
struct SettledCluster {
    id: String,
    statefulsets: List,
    controllerrevisions: List,
    pods: List,
    persistentvolumeclaims: List,
}

/// A list response.
#[derive(Deserialize)]
struct List {
    metadata: ListMetadata,
    items: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
}

/// Runs one cluster.
///
/// # Errors
///
/// The line is not a cluster, or one of its objects can't be decoded.
pub fn run(line: &str) -> anyhow::Result<Verdict> {
    run_with(line, FeatureGates::default())
}

/// Runs one cluster with other feature gates, or another emulated version.
///
/// # Errors
///
/// The line is not a cluster, or one of its objects can't be decoded.
pub fn run_with(line: &str, gates: FeatureGates) -> anyhow::Result<Verdict> {
    let cluster: SettledCluster = serde_json::from_str(line).context("not a settled cluster")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    Ok(match runtime.block_on(start_on(&cluster, gates)) {
        Ok(differences) => Verdict {
            id: cluster.id,
            differences,
            deviations: Vec::new(),
        },
        Err(error) => Verdict::broken(cluster.id, &error),
    })
}

/// Syncs every set of the cluster once; returns every write, and every revision that differs from
/// the status.
async fn start_on(cluster: &SettledCluster, gates: FeatureGates) -> anyhow::Result<Vec<String>> {
    let api = FakeClientset::new();
    let caches = Caches {
        pods: load(&cluster.pods, &PODS, &api)?,
        claims: load(
            &cluster.persistentvolumeclaims,
            &PERSISTENT_VOLUME_CLAIMS,
            &api,
        )?,
        sets: load(&cluster.statefulsets, &STATEFUL_SETS, &api)?,
        revisions: load(&cluster.controllerrevisions, &CONTROLLER_REVISIONS, &api)?,
    };
    let recorder = Arc::new(FakeRecorder::new());
    let clock = Arc::new(FakeClock::new(later(&caches.pods)));
    let client = api.rest_client();
    let sets = Arc::clone(&caches.sets);
    let parts = SyncerParts::new(
        caches,
        &client,
        Arc::<FakeRecorder>::clone(&recorder),
        clock,
        Arc::new(NoJitter),
        gates,
    );
    let syncer = SetSyncer::new(parts);

    let mut differences = Vec::new();
    for set in sets.list() {
        differences.extend(sync(&syncer, &set).await);
    }
    let reads = [Verb::Get, Verb::List, Verb::Watch];
    for action in api
        .actions()
        .into_iter()
        .filter(|action| !reads.contains(&action.verb))
    {
        let (verb, resource, name) = (action.verb, action.resource, action.name);
        differences.push(format!(
            "{verb} {resource} {name}: expected no write: {}",
            action.body
        ));
    }
    differences.extend(
        recorder
            .drain()
            .into_iter()
            .map(|event| format!("event: {event}")),
    );
    Ok(differences)
}

async fn sync(syncer: &SetSyncer, set: &StatefulSet) -> Option<String> {
    let key = set.key();
    let recorded = &set.status.update_revision;
    match syncer.sync(&key).await {
        Err(error) => Some(format!("{key}: {error}")),
        Ok(synced) => match synced.status.map(|status| status.update_revision) {
            Some(computed) if computed == *recorded => None,
            computed => Some(format!(
                "{key}: expected revision {recorded}, is {computed:?}"
            )),
        },
    }
}

/// A time at which every ready pod has been ready for long.
fn later(pods: &Indexer<Pod>) -> Timestamp {
    let last = pods
        .list()
        .iter()
        .filter_map(|pod| pod.readiness.last_transition_time)
        .max();
    last.unwrap_or_default() + LATER
}

fn load<K: CachedObject>(
    list: &List,
    resource: &Resource,
    api: &FakeClientset,
) -> anyhow::Result<Arc<Indexer<K>>> {
    let mut objects = Vec::new();
    for item in &list.items {
        let object = K::decode(item.get());
        objects.push(Arc::new(
            object.with_context(|| format!("a {} is odd", resource.kind))?,
        ));
        api.load(resource, item.get());
    }
    let indexer = Indexer::new();
    indexer.replace(objects, &list.metadata.resource_version);
    Ok(Arc::new(indexer))
}
