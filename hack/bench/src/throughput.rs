//! Times of the parts, each with its alternative.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::Context as _;
use k8s_openapi::api::core::v1 as core;
use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::resource::PODS;
use statefulset_client::workqueue::{NoopQueueMetrics, RateLimiter, WorkQueue};
use statefulset_controller_util::index::controller_index_key;
use statefulset_controller_util::pod::Pod;
use statefulset_history::{RevisionData, hash_controller_revision};
use tokio::runtime::Runtime;

use crate::cluster::{Recorded, SyncedSet};
use crate::report::{Report, Row};
use crate::timing::microseconds;

/// Number of other sets' pods.
const OTHERS: usize = 50_000;
/// Number of keys per batch in the queue.
const KEYS: u32 = 1_000;

/// Measures all rows.
pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let _guard = runtime.enter();
    let world = SyncedSet::new(5, OTHERS)?;
    runtime.block_on(world.check())?;
    report.add(decode()?);
    report.add(revision_data(&world)?);
    report.add(sync(&runtime, &world));
    report.add(queue(&runtime));
    report.add(look_up(&world));
    Ok(())
}

fn row(what: &str, value: f64, baseline_name: &'static str, baseline: f64) -> Row {
    let (what, unit, bound) = (what.to_owned(), "µs", None);
    Row {
        what,
        value,
        baseline,
        baseline_name,
        unit,
        bound,
    }
}

fn decode() -> anyhow::Result<Row> {
    let text = Recorded::read()?.numbered_pod_json(0);
    let ours = microseconds(|| drop(black_box(Pod::decode(&text))));
    let typed = microseconds(|| drop(black_box(serde_json::from_str::<core::Pod>(&text))));
    Ok(row("decode a pod", ours, "into k8s-openapi's Pod", typed))
}

fn revision_data(world: &SyncedSet) -> anyhow::Result<Row> {
    let template = &world.set.spec.template;
    let ours = microseconds(|| {
        let data = RevisionData::new(template);
        black_box(data.map(|data| hash_controller_revision(data.recorded(), Some(0)))).ok();
    });
    serde_json::from_str::<core::PodTemplateSpec>(&template.to_json())
        .context("decode the set's template")?;
    let baseline = microseconds(|| {
        let template = serde_json::from_str::<core::PodTemplateSpec>(&template.to_json());
        let text = template.and_then(|template| serde_json::to_string(&template));
        black_box(hash_controller_revision(&text.unwrap_or_default(), Some(0)));
    });
    Ok(row(
        "revision data of a template, and its hash",
        ours,
        "through k8s-openapi's type",
        baseline,
    ))
}

fn sync(runtime: &Runtime, world: &SyncedSet) -> Row {
    let whole = microseconds(|| {
        drop(black_box(runtime.block_on(world.syncer.sync(&world.key))));
    });
    let client = world.api.rest_client();
    let (namespace, name) = (world.pod.namespace(), world.pod.name());
    let request = microseconds(|| {
        drop(black_box(
            runtime.block_on(client.get(&PODS, namespace, name)),
        ));
        world.api.clear_actions();
    });
    row(
        "one sync of a settled set of 5 pods",
        whole,
        "one GET through kube's client, no network",
        request,
    )
}

fn queue(runtime: &Runtime) -> Row {
    let keys: Vec<ObjectKey> = (0..KEYS)
        .map(|number| ObjectKey::new("ns", &format!("set-{number}")))
        .collect();
    let queue = WorkQueue::new(RateLimiter::default(), Arc::new(NoopQueueMetrics));
    let through_queue = async || {
        for key in &keys {
            queue.add(key.clone());
        }
        for _ in &keys {
            if let Some(key) = queue.get().await {
                queue.done(&key);
            }
        }
    };
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<ObjectKey>();
    let ours = microseconds(|| runtime.block_on(through_queue()));
    let channel = microseconds(|| {
        runtime.block_on(async {
            for key in &keys {
                // The receiver is alive.
                let _ = sender.send(key.clone());
            }
            for _ in &keys {
                black_box(receiver.recv().await);
            }
        });
    });
    let each = f64::from(KEYS);
    row(
        "work queue: add, get and done of a key",
        ours / each,
        "through tokio's channel",
        channel / each,
    )
}

fn look_up(world: &SyncedSet) -> Row {
    let owner = world.set.controller_reference();
    let namespace = world.set.namespace();
    let indexed = microseconds(|| {
        black_box(
            world
                .pods
                .by_index(&controller_index_key(namespace, Some(&owner))),
        );
    });
    let scanned = microseconds(|| {
        let mut pods = world.pods.list();
        pods.retain(|pod| {
            pod.controller
                .as_deref()
                .is_some_and(|c| c.uid == owner.uid)
        });
        black_box(pods);
    });
    row(
        "find the 5 pods of a set among 50,000",
        indexed,
        "by a scan of all",
        scanned,
    )
}
