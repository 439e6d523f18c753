//! Pods to restart because their volumes wait for that to grow.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::time::parse_saturating;
use serde_json::Value;
use statefulset_controller_util::claim::Claim;
use statefulset_controller_util::live::Live;
use statefulset_controller_util::pod::Pod;
use statefulset_pod_control::stateful_set_utils::persistent_volume_claim_name;
use statefulset_pod_control::{Error, PodSlot};

use super::context::Context;
use super::state::ClaimState;
use crate::rollout_limit::is_paused;

/// A pod to restart.
pub(crate) struct Restart {
    /// The pod.
    pub(crate) pod: Arc<Pod>,
    /// The claim whose volume waits for that.
    pub(crate) claim: Arc<Claim>,
    wanted: i64,
}

impl Restart {
    /// Notes the restart: the pod isn't restarted for this claim again before a growing delay.
    pub(crate) fn note(&self, context: Context<'_>) {
        let (refusals, state) = (context.refusals, ClaimState::PodRestart);
        refusals.record(&self.claim.uid, self.wanted, state, "", context.now);
    }
}

/// Returns true if the controller restarts the pod sooner or later, because the cache shows that a volume
/// waits for that.
///
/// # Errors
///
/// A claim can't be looked up.
pub(crate) fn awaits_restart(context: Context<'_>, slot: &PodSlot) -> Result<bool, Error> {
    Ok(may_restart(context) && !waiting_claims(context, slot)?.is_empty())
}

/// Returns true if the set asks for restarts and isn't paused.
fn may_restart(context: Context<'_>) -> bool {
    context.restarts_pods() && !is_paused(context.rollout.set, context.opt_ins)
}

/// Returns the cached claims of a pod whose volumes wait for its restart, with their desired sizes.
fn waiting_claims(context: Context<'_>, slot: &PodSlot) -> Result<Vec<(Arc<Claim>, i64)>, Error> {
    let (set, claims) = (context.rollout.set, context.control.claims());
    let mut waiting = Vec::new();
    for (template, size) in context.opt_ins.claim_sizes.iter() {
        let name = persistent_volume_claim_name(set, template, slot.ordinal());
        let claim = claims.cached(&name)?;
        let wanted = size.value();
        let claim = claim.filter(|claim| waits(claim, wanted));
        waiting.extend(claim.map(|claim| (claim, wanted)));
    }
    Ok(waiting)
}

fn waits(claim: &Claim, wanted: i64) -> bool {
    ClaimState::of(claim, wanted, true) == ClaimState::PodRestart
}

/// Returns the next pods to restart, from the largest ordinal down and within the budget, if the set
/// asks for restarts and isn't paused.
///
/// A pod that is unavailable anyway is restarted even if others are, in an ordered set only the lowest:
/// it is created again before any other.
///
/// # Errors
///
/// A pod or a claim can't be read.
pub(crate) async fn due(context: Context<'_>) -> Result<Vec<Restart>, Error> {
    let rollout = context.rollout;
    let mut due = Vec::new();
    if !may_restart(context) {
        return Ok(due);
    }
    let seconds = rollout.set.spec.min_ready_seconds;
    let is_unavailable = |slot: &&PodSlot| slot.is_unavailable(seconds, context.now);
    let mut unavailable = rollout.desired.iter().filter(is_unavailable).count();
    let lowest = rollout.desired.iter().find(is_unavailable);
    let lowest = lowest.map(PodSlot::ordinal);
    let in_order = !rollout.set.spec.allows_burst();
    for slot in rollout.desired.iter().rev() {
        let Some(pod) = slot.existing().filter(|pod| !pod.is_terminating()) else {
            continue;
        };
        let is_down = is_unavailable(&slot);
        let others = unavailable - usize::from(is_down);
        let is_free = is_down && (!in_order || lowest == Some(slot.ordinal()));
        if others >= rollout.max_unavailable && !is_free {
            continue;
        }
        if let Some(restart) = of_pod(context, slot, pod).await? {
            due.push(restart);
            unavailable += usize::from(!is_down);
            if in_order {
                break;
            }
        }
    }
    Ok(due)
}

/// Returns the restart that a pod needs: the file system of a volume waits for the node since after the
/// pod was created, as live reads of both show.
async fn of_pod(
    context: Context<'_>,
    slot: &PodSlot,
    pod: &Arc<Pod>,
) -> Result<Option<Restart>, Error> {
    for (claim, wanted) in waiting_claims(context, slot)? {
        let tried = context.refusals.get(&claim.uid, wanted);
        if tried.is_some_and(|it| it.retry_after(context.now).is_some()) {
            continue;
        }
        let live = context.control.claims().read_live(&claim).await;
        let live = live.map_err(|source| Error::Claim {
            action: format!("could not read claim {} to restart its pod", claim.name),
            source,
        })?;
        let Some(live) = live.filter(|live| waits(&live.object, wanted)) else {
            continue;
        };
        let Some(live_pod) = context.control.read_live(pod).await? else {
            return Ok(None);
        };
        let pod = Arc::clone(pod);
        let restart = Restart { pod, claim, wanted };
        if !is_newer(&live_pod, &live) {
            return Ok(Some(restart));
        }
        // The node will complete it, so the next look has time.
        restart.note(context);
    }
    Ok(None)
}

/// Returns true if the pod was created after the claim's file system began to wait for the node.
fn is_newer(pod: &Live<Pod>, claim: &Live<Claim>) -> bool {
    let time = |value: Option<&Value>| -> Option<Timestamp> { parse_saturating(value?.as_str()?) };
    let conditions = claim.json.pointer("/status/conditions");
    let conditions = conditions.and_then(Value::as_array);
    let mut pending = conditions.into_iter().flatten();
    let pending = pending.find(|it| it["type"] == "FileSystemResizePending");
    let since = time(pending.and_then(|it| it.get("lastTransitionTime")));
    let created = time(pod.json.pointer("/metadata/creationTimestamp"));
    matches!((created, since), (Some(created), Some(since)) if created > since)
}
