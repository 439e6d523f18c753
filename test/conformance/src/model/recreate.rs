//! The strategy `Recreate` of 1.37: deletion of all old pods before any other step.

use serde_json::Value;

use super::claims::{release_kept_claims, take_unseen_claims_from};
use super::failure::Failure;
use super::object::{is_deleting, label};
use super::pods::{delete_condemned, delete_pod};
use super::set::{REVISION, is_created};
use super::sync::{Step, Sync};

/// Size of the largest batch.
const BATCH_MAX: usize = 500;

/// From 1.37 on, a set with the strategy fails without its gate.
pub(super) fn refuse_recreate(sync: &mut Sync) -> Result<(), Failure> {
    if sync.minor < 37 || sync.recreate_gate || sync.set.strategy() != "Recreate" {
        return Ok(());
    }
    let message = format!(
        "statefulset {}/{} uses Recreate strategy but feature gate \
         StatefulSetRecreateStrategy is disabled",
        sync.set.namespace, sync.set.name
    );
    sync.events
        .push(format!("Warning UnknownStrategy {message}"));
    Err(Failure::new(message))
}

/// Deletes the old pods in batches, under any policy. `Exit` means that an old pod existed.
pub(super) fn delete_old_pods(
    sync: &mut Sync,
    replicas: &[Value],
    condemned: &[Value],
    update: &str,
) -> Result<Step, Failure> {
    let pods: Vec<&Value> = replicas.iter().chain(condemned).collect();
    let is_old = |pod: &Value| is_created(pod) && label(pod, REVISION) != update;
    let Some(_) = pods.iter().find(|pod| is_old(pod)) else {
        return Ok(Step::Continue);
    };
    release_kept_claims(sync, replicas, condemned)?;
    let (mut start, mut size) = (0, 1);
    while start < pods.len() {
        let end = (start + size).min(pods.len());
        let batch: Vec<usize> = (start..end).filter(|at| is_old(pods[*at])).collect();
        sync.in_parallel(&batch, |sync, at| {
            delete_old_pod(sync, pods[at], at < replicas.len())
        })?;
        (start, size) = (end, (2 * size).min(BATCH_MAX));
    }
    Ok(Step::Exit)
}

fn delete_old_pod(sync: &mut Sync, pod: &Value, is_wanted: bool) -> Result<(), Failure> {
    if is_deleting(pod) {
        return Ok(());
    }
    if is_wanted {
        take_unseen_claims_from(sync, pod)?;
        delete_pod(sync, pod)
    } else {
        delete_condemned(sync, pod)
    }
}
