//! A frozen cluster with the caches and the API of a case, and one sync on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use kube_apimachinery::object_key::ObjectKey;
use serde::Deserialize;
use serde_json::Value;
use statefulset_client::backoff::NoJitter;
use statefulset_client::cache::indexer::{CachedObject, Indexer};
use statefulset_client::clock::FakeClock;
use statefulset_client::error::Error;
use statefulset_client::fake::{FakeClientset, Verb};
use statefulset_client::recorder::FakeRecorder;
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, STATEFUL_SETS,
};
use statefulset_controller::{SetSyncer, SyncerParts};
use statefulset_controller_util::consistency::Caches;

use crate::outcome::{Outcome, comparable};
use crate::requests::{self, RequestLog, Source};
use crate::sync_case::{Case, another_uid};

const RESOURCES: [Resource; 4] = [
    STATEFUL_SETS,
    CONTROLLER_REVISIONS,
    PODS,
    PERSISTENT_VOLUME_CLAIMS,
];

/// Runs the case's sync in paused time; also returns the names of the rules by which requests of
/// the product have no counterpart in upstream.
pub(super) fn sync(case: &Case) -> anyhow::Result<(Outcome, Vec<&'static str>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(sync_once(case))
}

async fn sync_once(case: &Case) -> anyhow::Result<(Outcome, Vec<&'static str>)> {
    let api = FakeClientset::new();
    let caches = load(case, &api)?;
    let live_reads = FakeClientset::new();
    for set in api.raw_objects(&STATEFUL_SETS) {
        live_reads.load(&STATEFUL_SETS, set);
    }
    for fault in &case.faults {
        // Upstream reads live sets only before adoptions: only those reads fail.
        let is_live_read = fault.verb == Verb::Get && fault.resource == STATEFUL_SETS.plural;
        let target = if is_live_read { &live_reads } else { &api };
        target.fail(fault.clone());
    }
    freeze_reads(case, &api)?;
    if let Some(fault) = case.live_read_fault {
        api.react(Verb::Get, fault.resource, move |read| {
            Some(Err(fault.error.to_error(read)))
        });
    }
    refuse_deletions(case, &api)?;
    let log = RequestLog::default();
    log.follow(&api, Source::Client);
    log.follow(&live_reads, Source::Adoption);
    let client = api.rest_client();
    let recorder = Arc::new(FakeRecorder::new());
    let clock = Arc::new(FakeClock::new(case.now));
    let mut parts = SyncerParts::new(
        caches,
        &client,
        Arc::<FakeRecorder>::clone(&recorder),
        clock,
        Arc::new(NoJitter),
        case.gates()?,
    );
    parts.reader = Arc::new(live_reads.rest_client());
    let key = ObjectKey::parse(&case.key).context("the case's key")?;
    let result = SetSyncer::new(parts).sync(&key).await;

    let claims = case.claim_volumes()?;
    let mut events = recorder.drain();
    let (mut requests, rules) = log.requests(&claims)?;
    requests::sort_neighbours(&mut requests);
    if !case.events_are_ordered()? {
        events.sort();
        requests::sort(&mut requests);
    }
    let objects = RESOURCES
        .iter()
        .flat_map(|resource| api.raw_objects(resource));
    let outcome = Outcome {
        failed: result.is_err(),
        requeue_after: result
            .ok()
            .and_then(|synced| synced.requeue_after)
            .map(go_duration),
        events,
        requests,
        objects: objects
            .map(|text| comparable(&text, &claims))
            .collect::<Result<_, _>>()?,
    };
    Ok((outcome, rules))
}

/// Lets reads that upstream doesn't make return the objects from before the sync: where the
/// controller reads an object before a write, upstream writes the copy from its cache. The
/// writes are still compared.
fn freeze_reads(case: &Case, api: &FakeClientset) -> anyhow::Result<()> {
    for resource in [CONTROLLER_REVISIONS, PODS, PERSISTENT_VOLUME_CLAIMS] {
        let mut frozen: BTreeMap<(String, String), String> = BTreeMap::new();
        for object in case.objects.iter().chain(&case.live_pods) {
            let value: Value = serde_json::from_str(object.get())?;
            if value["kind"] == resource.kind {
                let text =
                    |member: &str| value["metadata"][member].as_str().unwrap_or("").to_owned();
                frozen.insert((text("namespace"), text("name")), object.get().to_owned());
            }
        }
        api.react(Verb::Get, resource.plural, move |read| {
            let key = (read.namespace.clone(), read.name.clone());
            frozen.get(&key).cloned().map(Ok)
        });
    }
    Ok(())
}

/// Rejects deletions whose uid isn't the live pod's, like an API server; the fake API ignores
/// preconditions.
fn refuse_deletions(case: &Case, api: &FakeClientset) -> anyhow::Result<()> {
    let mut live_uids = BTreeMap::new();
    for pod in &case.live_pods {
        let pod: Value = serde_json::from_str(pod.get())?;
        let text = |member: &str| pod["metadata"][member].as_str().unwrap_or("").to_owned();
        live_uids.insert((text("namespace"), text("name")), text("uid"));
    }
    api.react(Verb::Delete, PODS.plural, move |deletion| {
        let live_uid = live_uids.get(&(deletion.namespace.clone(), deletion.name.clone()))?;
        let options: Value = serde_json::from_str(&deletion.body).ok()?;
        let wanted = options["preconditions"]["uid"].as_str()?;
        (wanted != live_uid).then(|| {
            let text = another_uid(PODS.plural, &deletion.name, wanted, live_uid);
            Err(Error::api(409, "Conflict", text))
        })
    });
    Ok(())
}

/// Fills caches and API.
fn load(case: &Case, api: &FakeClientset) -> anyhow::Result<Caches> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let caches = Caches::default();
    for object in &case.objects {
        let text = object.get();
        let kind: Kind = serde_json::from_str(text)?;
        match kind.kind.as_str() {
            "StatefulSet" => {
                add(&caches.sets, text)?;
                if !case.live_set_absent {
                    api.load(
                        &STATEFUL_SETS,
                        case.live_set.as_deref().unwrap_or(object).get(),
                    );
                }
            }
            "ControllerRevision" => {
                add(&caches.revisions, text)?;
                api.load(&CONTROLLER_REVISIONS, text);
            }
            "Pod" => {
                add(&caches.pods, text)?;
                api.load(&PODS, text);
            }
            "PersistentVolumeClaim" => {
                add(&caches.claims, text)?;
                api.load(&PERSISTENT_VOLUME_CLAIMS, text);
            }
            other => anyhow::bail!("objects of kind {other:?} are not supported in a case"),
        }
    }
    for pod in &case.live_pods {
        api.load(&PODS, pod.get());
    }
    Ok(caches)
}

fn add<K: CachedObject>(cache: &Indexer<K>, text: &str) -> anyhow::Result<()> {
    cache.add(K::decode(text).context("an object can't be decoded")?);
    Ok(())
}

/// Formats a duration like Go: `1h2m3.5s`, `250ms`.
fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let nanos = duration.subsec_nanos();
    if seconds == 0 && nanos > 0 {
        let (unit, scale) = match nanos {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!(
            "{}{unit}",
            fraction(u64::from(nanos / scale), nanos % scale, scale)
        );
    }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let rest = format!("{}s", fraction(seconds % 60, nanos, 1_000_000_000));
    match (hours, minutes) {
        (0, 0) => rest,
        (0, minutes) => format!("{minutes}m{rest}"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}"),
    }
}

fn fraction(whole: u64, part: u32, scale: u32) -> String {
    if part == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    format!(
        "{whole}.{}",
        format!("{part:0width$}").trim_end_matches('0')
    )
}
