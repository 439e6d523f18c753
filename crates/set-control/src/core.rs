//! One pass over the pods of a set: layout, phases, and the status that results.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::{StatefulSet, StatefulSetStatus};
use statefulset_history::apply_revision;
use statefulset_pod_control::{LiveSetCheck, StatefulPodControl};

use crate::counts::count_pods;
use crate::error::Error;
use crate::layout::{Layout, SetRevision};
use crate::outcome::Waiting;
use crate::phases::Phases;
use crate::revisions::CurrentAndUpdate;
use crate::rolling_update::plan;
use crate::run_for_all::{Flow, Mode, run_for_all};

/// What a pass led to: the status is known even where something failed.
pub(crate) struct Pass {
    pub(crate) status: StatefulSetStatus,
    pub(crate) waiting: Option<Waiting>,
    pub(crate) error: Option<Error>,
    /// How many pods are unavailable, where the budget for that was looked at.
    pub(crate) unavailable_replicas: Option<usize>,
}

/// What a pass needs beside the set and its pods.
pub(crate) struct PassContext<'a> {
    pub(crate) pod_control: &'a dyn StatefulPodControl,
    pub(crate) max_unavailable_gate: bool,
    pub(crate) now: Timestamp,
}

/// Makes one pass.
///
/// # Errors
///
/// A revision can't be applied to the set: nothing was counted or done.
///
/// Upstream: `updateStatefulSet`.
pub(crate) async fn run_pass(
    context: &PassContext<'_>,
    set: &StatefulSet,
    revisions: &CurrentAndUpdate,
    pods: &[Arc<Pod>],
) -> Result<Pass, Error> {
    let now = context.now;
    let current = set_revision(set, &revisions.current)?;
    // Applying a revision is the larger part of a sync, and mostly the two are one.
    let update = if Arc::ptr_eq(&revisions.current, &revisions.update) {
        current.clone()
    } else {
        set_revision(set, &revisions.update)?
    };
    let mut status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        current_revision: current.name.clone(),
        update_revision: update.name.clone(),
        collision_count: Some(revisions.collision_count),
        // Conditions are those of others.
        conditions: set.status.conditions.clone(),
        ..StatefulSetStatus::default()
    };
    count_pods(&mut status, set, pods.iter().map(|pod| &**pod), now);
    let layout = Layout::new(set, &current, &update, pods, now);
    if set.is_deleting() {
        return Ok(Pass {
            status,
            waiting: Some(Waiting::SetDeleted),
            error: None,
            unavailable_replicas: None,
        });
    }

    let mode = if set.spec.allows_burst() {
        Mode::Burst
    } else {
        Mode::Monotonic
    };
    let live_set = LiveSetCheck::new();
    let pod_control = context.pod_control;
    let phases = Phases {
        pods: pod_control,
        set,
        update_set: &update.set,
        mode,
        now,
        live_set,
    };
    let mut noted = None;
    let flow = run_phases(&phases, &layout, &mut noted).await;
    count_pods(&mut status, set, layout.pods(), now);
    let mut unavailable_replicas = None;
    let (waiting, error) = match flow {
        Err(error) => (noted, Some(error)),
        Ok(Flow::Exit(waiting)) => (Some(waiting), None),
        Ok(Flow::Continue) if !layout.is_complete => {
            // The rest is made by the next sync; updates come after that.
            let made = layout
                .replicas
                .iter()
                .rfind(|slot| slot.existing().is_none());
            let created = made.map(|slot| Waiting::PodCreated {
                pod: slot.name().into(),
            });
            (noted.or(created), None)
        }
        Ok(Flow::Continue) => {
            let plan = plan(
                set,
                &layout.replicas,
                &status.update_revision,
                context.max_unavailable_gate,
                now,
            );
            match plan {
                Ok(plan) => {
                    unavailable_replicas = plan.unavailable;
                    let rolled = roll(pod_control, set, &plan.delete, &mut status).await;
                    (noted.or(plan.waiting), rolled.err())
                }
                Err(error) => (noted, Some(error.into())),
            }
        }
    };
    Ok(Pass {
        status,
        waiting,
        error,
        unavailable_replicas,
    })
}

fn set_revision(
    set: &StatefulSet,
    revision: &statefulset_controller_util::controller_revision::ControllerRevision,
) -> Result<SetRevision, Error> {
    Ok(SetRevision {
        name: revision.name.clone(),
        set: apply_revision(set, revision)?,
    })
}

/// Replicas, then the claims of condemned pods, then the condemned pods.
async fn run_phases(
    phases: &Phases<'_>,
    layout: &Layout,
    noted: &mut Option<Waiting>,
) -> Result<Flow, Error> {
    let mode = phases.mode;
    let reached = AtomicUsize::new(0);
    let process = |slot| {
        reached.fetch_add(1, Ordering::Relaxed);
        phases.process_replica(slot)
    };
    let processed = run_for_all(&layout.replicas, mode, noted, process).await;
    if !matches!(processed, Ok(Flow::Continue)) {
        let waiting = layout.replicas.get(reached.into_inner()..);
        let waiting = waiting.unwrap_or_default();
        let released = phases.release_kept_claims(waiting, &layout.condemned).await;
        return processed.and_then(|exit| released.map(|()| exit));
    }
    // Claims are no reason to wait: the pods go on to the next phase, or an error ends the sync.
    let fix = |slot| phases.fix_claims(slot);
    run_for_all(&layout.condemned, mode, noted, fix).await?;
    let first_unavailable = layout.first_unavailable.as_deref();
    let remove = |slot| phases.process_condemned(slot, first_unavailable);
    run_for_all(&layout.condemned, mode, noted, remove).await
}

/// Deletes pods of an old revision; stops at the first failure.
pub(crate) async fn roll(
    pod_control: &dyn StatefulPodControl,
    set: &StatefulSet,
    outdated: &[Arc<Pod>],
    status: &mut StatefulSetStatus,
) -> Result<(), Error> {
    for pod in outdated {
        pod_control.delete_stateful_pod(set, pod).await?;
        // A deleted pod may carry a third revision, so the count could fall below zero.
        status.current_replicas = (status.current_replicas - 1).max(0);
    }
    Ok(())
}
