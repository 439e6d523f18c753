//! The growth of a set's claims in one sync.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_apimachinery::quantity::Quantity;
use statefulset_controller_util::claim::Claim;
use statefulset_pod_control::stateful_set_utils::{Ordinal, persistent_volume_claim_name};
use statefulset_pod_control::{Error, PodSlot};
use tokio::task::coop::consume_budget;

use super::attempt::{Attempt, Candidate};
use super::context::Context;
use super::refusals::Refusal;
use super::state::{ClaimState, is_in_flight};
use crate::rollout::Rollout;

/// Reason of the event about a claim that grows.
const GROWING: &str = "ClaimGrowing";
/// Reason of the event about a claim whose growth was refused.
const REFUSED: &str = "ClaimGrowthRefused";

/// The size of refusals that concern all claims of a set.
const ANY_SIZE: i64 = 0;

/// Missing pods whose claims a sync looks at: a set may want billions of pods.
const MISSING_MAX: usize = 10_000;

/// The reason why a claim is queued if its pod is missing.
const POD_MISSING: &str = "its pod is missing";

/// Delay before the next pods' claims after refusals, and after a conflict.
const NEXT: Duration = Duration::from_secs(1);

/// The claims of a set that asks for sizes, after a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// Number of existing claims with a desired size.
    pub total: usize,
    /// Claims that don't have it, from the largest ordinal down.
    pub unfinished: Vec<Unfinished>,
    /// Claims whose next event may bring them on.
    pub awaited: Vec<AwaitedClaim>,
    /// Time until the next attempt after a refusal.
    pub retry_after: Option<Duration>,
    /// True if more pods are missing than those whose claims a sync looks at.
    pub is_partial: bool,
}

/// A claim that doesn't have the desired size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Its name.
    pub claim: Box<str>,
    /// Its state.
    pub state: ClaimState,
    /// The server's reason for a refusal; empty if the state says it all.
    pub message: Box<str>,
}

/// A claim whose next event may bring it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedClaim {
    /// Its name.
    pub name: Box<str>,
    /// Resource version of the claim on which the sync decided.
    pub resource_version: Box<str>,
}

/// A claim with its state.
struct Item<'a> {
    claim: Arc<Claim>,
    size: &'a Quantity,
    state: ClaimState,
    /// The server's reason for a refusal.
    message: Box<str>,
    /// Time until the next attempt after a refusal.
    retry_after: Option<Duration>,
    /// The last refusal if the next attempt is due. It is told until that attempt, so that the status
    /// doesn't change while other claims are tried first.
    refused_before: Option<(ClaimState, Box<str>)>,
    in_flight: bool,
}

/// The claims of one pod.
struct PodClaims<'a> {
    /// The pod; none if it is missing and this sync doesn't create it. Then no claim is written.
    slot: Option<&'a PodSlot>,
    /// True if the pod is missing or unavailable.
    is_down: bool,
    items: Vec<Item<'a>>,
}

/// The result of one pod's turn.
#[derive(Default)]
struct Turn {
    /// True if a request was accepted.
    is_written: bool,
    /// True if a request was refused.
    is_refused: bool,
    /// True if another client wrote a claim at the same time.
    conflicted: bool,
    /// The server's reason if the controller has no right to write claims.
    missing_permission: Option<Box<str>>,
}

impl PodClaims<'_> {
    fn is_in_flight(&self) -> bool {
        self.items.iter().any(|item| item.in_flight)
    }

    /// Returns true if volumes are being expanded, and all wait for a restart of the pod.
    fn awaits_restart(&self) -> bool {
        let mut in_flight = self.items.iter().filter(|item| item.in_flight);
        self.is_in_flight() && in_flight.all(|item| item.claim.storage.awaits_node)
    }

    fn is_due(&self) -> bool {
        let mut states = self.items.iter().map(|item| item.state);
        self.slot.is_some() && states.any(|state| state == ClaimState::Queued)
    }

    /// Holds all due claims, because the controller has no right to write them.
    fn forbid(&mut self, message: &str, retry_after: Option<Duration>) {
        let due = self.items.iter_mut();
        for item in due.filter(|item| item.state == ClaimState::Queued) {
            item.state = ClaimState::MissingPermission;
            item.message = message.into();
            item.retry_after = retry_after;
        }
    }
}

impl Item<'_> {
    /// Takes over a refusal, unless its next attempt is due.
    fn remember(&mut self, refusal: Option<&Refusal>, now: Timestamp) {
        let Some(refusal) = refusal else { return };
        // A restart is remembered as well: it is the next attempt that counts.
        let is_restart = refusal.state == ClaimState::PodRestart;
        let is_refused = self.state == ClaimState::Queued && !is_restart;
        let (state, message) = (refusal.state, refusal.message.clone());
        let Some(delay) = refusal.retry_after(now) else {
            self.refused_before = is_refused.then_some((state, message));
            return;
        };
        if is_refused {
            (self.state, self.message) = (state, message);
        }
        if self.state == state {
            self.retry_after = Some(delay);
        }
    }

    /// Returns the state to tell.
    fn told(&mut self) -> ClaimState {
        if self.state == ClaimState::Queued
            && let Some((state, message)) = self.refused_before.take()
        {
            (self.state, self.message) = (state, message);
        }
        self.state
    }
}

impl Growth {
    /// Returns true if all claims of the set have the desired size.
    pub(super) fn is_complete(&self) -> bool {
        self.unfinished.is_empty() && !self.is_partial
    }

    fn of(pods: Vec<PodClaims<'_>>, retry_after: Option<Duration>) -> Self {
        let mut growth = Self {
            retry_after,
            ..Self::default()
        };
        for mut item in pods.into_iter().flat_map(|pod| pod.items) {
            let state = item.told();
            growth.total += 1;
            let delays = growth.retry_after.into_iter().chain(item.retry_after);
            growth.retry_after = delays.min();
            if state.awaits_event() {
                growth.awaited.push(AwaitedClaim {
                    name: item.claim.name.clone(),
                    resource_version: item.claim.resource_version.clone(),
                });
            }
            if state != ClaimState::Resized {
                growth.unfinished.push(Unfinished {
                    claim: item.claim.name.clone(),
                    state,
                    message: item.message,
                });
            }
        }
        growth
    }
}

/// Lets claims grow that are smaller than the set asks: those of the pod with the largest ordinal first,
/// of as many pods at a time as may be unavailable. The claims of pods that are down don't wait for
/// restarts of others. A pod's turn ends when its volumes have the size, were refused it, or wait for a
/// restart that the controller doesn't make.
///
/// # Errors
///
/// A claim can't be looked up, read or written, for a cause that may pass.
pub(crate) async fn grow(context: Context<'_>) -> Result<Growth, Error> {
    let mut pods = pod_claims(context).await?;
    let budget = context.rollout.max_unavailable;
    let mut in_flight = pods.iter().filter(|pod| pod.is_in_flight()).count();
    let awaits_restart = |pod: &&PodClaims<'_>| pod.awaits_restart();
    let restarting = pods.iter().filter(awaits_restart).count();
    let mut refused = 0;
    let mut retry_after = None;
    let mut is_permitted = false;
    let mut next = 0;
    while let Some(pod) = pods.get_mut(next) {
        next += 1;
        let was_in_flight = pod.is_in_flight();
        // A pod that is down holds the restarts of others back, so they don't hold back its volumes.
        let in_use = in_flight - if pod.is_down { restarting } else { 0 };
        if !pod.is_due() || (!was_in_flight && in_use >= budget) {
            continue;
        }
        // Refusals cost two requests each, so a sync meets few of them.
        if refused >= budget {
            retry_after = Some(NEXT);
            break;
        }
        let turn = grow_pod(context, pod).await?;
        in_flight += usize::from(!was_in_flight && pod.is_in_flight());
        is_permitted |= turn.is_written;
        refused += usize::from(turn.is_refused);
        retry_after = retry_after.or(turn.conflicted.then_some(NEXT));
        if let Some(message) = turn.missing_permission {
            let refusal = context.refusals.get(context.rollout.set.uid(), ANY_SIZE);
            let delay = refusal.and_then(|it| it.retry_after(context.now));
            for pod in &mut pods {
                pod.forbid(&message, delay);
            }
            break;
        }
    }
    if is_permitted {
        context.refusals.forget(context.rollout.set.uid());
        for item in pods.iter_mut().flat_map(|pod| &mut pod.items) {
            let refusal = &mut item.refused_before;
            refusal.take_if(|(state, _)| *state == ClaimState::MissingPermission);
        }
    }
    Ok(Growth {
        is_partial: missing(context.rollout) > MISSING_MAX,
        ..Growth::of(pods, retry_after)
    })
}

/// Returns the number of pods without a slot.
fn missing(rollout: Rollout<'_>) -> usize {
    let replicas = usize::try_from(rollout.set.spec.replicas).unwrap_or(0);
    replicas.saturating_sub(rollout.desired.len())
}

/// Returns the ordinals of the set with their slots, from the largest down. Those without a slot are
/// limited.
fn ordinals(rollout: Rollout<'_>) -> Vec<(Ordinal, Option<&PodSlot>)> {
    let set = rollout.set;
    let mut missing = missing(rollout).min(MISSING_MAX);
    let mut slots = rollout.desired.iter().peekable();
    let mut ordinals = Vec::with_capacity(rollout.desired.len() + missing);
    for index in 0..usize::try_from(set.spec.replicas).unwrap_or(0) {
        let ordinal = Ordinal::of_index(set, index);
        let slot = slots.next_if(|slot| slot.ordinal() == ordinal);
        if slot.is_none() && missing == 0 {
            break;
        }
        missing -= usize::from(slot.is_none());
        ordinals.push((ordinal, slot));
    }
    ordinals.extend(slots.map(|slot| (slot.ordinal(), Some(slot))));
    ordinals.reverse();
    ordinals
}

/// Returns the existing claims with a desired size, from the largest ordinal down, as the cache shows
/// them.
async fn pod_claims(context: Context<'_>) -> Result<Vec<PodClaims<'_>>, Error> {
    let rollout = context.rollout;
    let restarts = context.restarts_pods();
    let forbidden = context.refusals.get(rollout.set.uid(), ANY_SIZE);
    let forbidden = forbidden.as_ref();
    let seconds = rollout.set.spec.min_ready_seconds;
    let mut pods = Vec::new();
    for (ordinal, slot) in ordinals(rollout) {
        consume_budget().await;
        let mut items = Vec::new();
        for (template, size) in context.opt_ins.claim_sizes.iter() {
            let name = persistent_volume_claim_name(rollout.set, template, ordinal);
            let Some(claim) = context.control.claims().cached(&name)? else {
                continue;
            };
            let wanted = size.value();
            let mut item = Item {
                state: ClaimState::of(&claim, wanted, restarts),
                in_flight: is_in_flight(&claim, restarts),
                claim,
                size,
                message: Box::default(),
                retry_after: None,
                refused_before: None,
            };
            item.remember(forbidden, context.now);
            item.remember(
                context.refusals.get(&item.claim.uid, wanted).as_ref(),
                context.now,
            );
            if slot.is_none() && item.state == ClaimState::Queued {
                item.message = POD_MISSING.into();
            }
            items.push(item);
        }
        let is_down = slot.is_none_or(|slot| slot.is_unavailable(seconds, context.now));
        let pod = PodClaims {
            slot,
            is_down,
            items,
        };
        pods.push(pod);
    }
    Ok(pods)
}

/// Attempts to let the due claims of a pod grow.
async fn grow_pod(context: Context<'_>, pod: &mut PodClaims<'_>) -> Result<Turn, Error> {
    let mut turn = Turn::default();
    let (set, events) = (context.rollout.set, context.control.events());
    let restarts = context.restarts_pods();
    let Some(slot) = pod.slot else {
        return Ok(turn);
    };
    let due = pod.items.iter_mut();
    for item in due.filter(|item| item.state == ClaimState::Queued) {
        let name = &item.claim.name;
        let candidate = Candidate {
            set,
            slot,
            claim: &item.claim,
            size: item.size,
            restarts,
        };
        let attempt = candidate.attempt(context.control.claims()).await;
        let attempt = attempt.map_err(|source| Error::Claim {
            action: format!("could not let claim {name} grow to {}", item.size),
            source,
        })?;
        match attempt {
            Attempt::Written => {
                turn.is_written = true;
                context.refusals.forget(&item.claim.uid);
                let message = format!("Claim {name} grows to {}", item.size);
                events.note(GROWING, &message);
                (item.state, item.in_flight) = (ClaimState::Growing, true);
            }
            Attempt::NotNeeded(state, in_flight) => {
                (item.state, item.in_flight) = (state, in_flight);
            }
            Attempt::Gone => (item.state, item.in_flight) = (ClaimState::Terminating, false),
            Attempt::Conflict => {
                turn.conflicted = true;
                item.in_flight = true;
            }
            Attempt::Refused(ClaimState::MissingPermission, message) => {
                let state = ClaimState::MissingPermission;
                record(context, item, (set.uid(), ANY_SIZE), state, &message);
                turn.missing_permission = Some(message);
                return Ok(turn);
            }
            Attempt::Refused(state, message) => {
                turn.is_refused = true;
                let (uid, wanted) = (item.claim.uid.clone(), item.size.value());
                record(context, item, (&uid, wanted), state, &message);
                let refusal = context.refusals.get(&uid, wanted);
                item.remember(refusal.as_ref(), context.now);
            }
        }
    }
    Ok(turn)
}

/// Records a refusal by uid and size, and tells it once.
fn record(
    context: Context<'_>,
    item: &Item<'_>,
    (uid, wanted): (&str, i64),
    state: ClaimState,
    message: &str,
) {
    let refusals = context.refusals;
    if !refusals.record(uid, wanted, state, message, context.now) {
        return;
    }
    let (claim, size) = (&item.claim.name, item.size);
    let reason = match message {
        "" => state.description(),
        message => message,
    };
    let text = format!("Claim {claim} doesn't grow to {size}: {reason}");
    context.control.events().warn(REFUSED, &text);
}
