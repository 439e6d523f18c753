//! Restarts of pods whose volumes wait for that to grow.

use kube_test_control_plane::route::Verb;

use super::growth::wanted;
use super::limit::is_paused;
use super::{Case, Write, choices, gate};
use crate::agent::Process;
use crate::record::{Request, SetKey};
use crate::views::{Claim, Pod, Set};

/// Reports whether a deletion of a pod is a restart for one of its volumes.
pub(in super::super) fn is_restart(case: &Case<'_>, write: &Write<'_>) -> bool {
    write.deleted_pod().is_some() && check_restart(case, write).is_ok()
}

/// The waits of a pod's volumes for its restart.
#[derive(Clone, Copy, Default)]
pub(super) struct Waits {
    /// In some version of its claim.
    pub(super) in_some: bool,
    /// In all of them.
    pub(super) in_all: bool,
}

/// Reports whether the controller restarts the pod with this ordinal sooner or later, by the versions of its
/// claims between these two.
pub(super) fn waits(
    case: &Case<'_>,
    process: Process,
    set: &Set,
    ordinal: u32,
    (namespace, from, until): (&str, u64, u64),
) -> Waits {
    let mut waits = Waits::default();
    let Some(choices) = choices(case, process, set) else {
        return waits;
    };
    if !choices.restarts() || is_paused(&choices, set) || set.is_on_delete() {
        return waits;
    }
    for name in set.claims_of(ordinal) {
        let size = wanted(case, process, set, &name);
        let key: SetKey = (namespace.to_owned(), name);
        let versions = case.history.claims.during(&key, from, until);
        let versions: Vec<bool> = versions
            .map(|it| it.awaits_node.is_some() && !it.terminating && size == Some(it.request))
            .collect();
        waits.in_some |= versions.contains(&true);
        waits.in_all |= !versions.is_empty() && !versions.contains(&false);
    }
    waits
}

/// a pod is restarted for a volume only if its set asks for that and isn't paused, if live reads of
/// both show that the file system waits since after the pod's creation, and within the budget.
pub(in super::super) fn check_restart(case: &Case<'_>, write: &Write<'_>) -> Result<(), String> {
    let set = write.view.set;
    let choices = choices(case, write.sync.process, set).ok_or("the gates are off")?;
    let (ordinal, pod) = write.deleted_pod().ok_or("the sync knew no such pod")?;
    if !choices.restarts() || is_paused(&choices, set) || set.is_on_delete() || set.terminating {
        return Err("the set asks for no restart".to_owned());
    }
    if !set.range().contains(&ordinal) || pod.terminating || pod.has_ended() {
        return Err("it goes anyway".to_owned());
    }
    let mut claims = set.claims_of(ordinal);
    if !claims.any(|claim| is_due(case, write, &claim, pod)) {
        return Err("no volume waits for it".to_owned());
    }
    let read = gate::last_read(write, &pod.name);
    if read.is_none_or(|read| read.status != Some(200)) {
        return Err("it was not read live".to_owned());
    }
    let is_up = |it: u32, now| {
        let pod = write.view.members.get(&it);
        pod.is_some_and(|pod| pod.is_healthy(set.min_ready_seconds, now))
    };
    let was_deleted = |it: u32| {
        let name = format!("{}-{it}", set.name);
        let mut earlier = write.earlier.iter();
        earlier.any(|it| it.verb == Some(Verb::Delete) && it.resource == "pods" && it.name == name)
    };
    let others = set.range().filter(|it| *it != ordinal);
    let down = others.filter(|it| !is_up(*it, write.now) || was_deleted(*it));
    let max = set.max_unavailable(case.plan.settings.max_unavailable);
    let first_down = set.range().find(|it| !is_up(*it, write.early));
    let is_free = !is_up(ordinal, write.early) && (set.parallel || first_down == Some(ordinal));
    if down.count() >= max && !is_free {
        return Err("other pods are down".to_owned());
    }
    Ok(())
}

/// Reports whether the sync's last live read of a claim shows that its file system, of the desired size,
/// waits for a pod newer than this one.
fn is_due(case: &Case<'_>, write: &Write<'_>, claim: &str, pod: &Pod) -> bool {
    let Some(size) = wanted(case, write.sync.process, write.view.set, claim) else {
        return false;
    };
    let mut earlier = write.earlier.iter().rev();
    let is_read = |it: &&&Request| {
        let is_of_claim = it.resource == "persistentvolumeclaims" && it.name == claim;
        it.verb == Some(Verb::Get) && is_of_claim && it.status == Some(200)
    };
    let processed = earlier.find(is_read).and_then(|it| it.processed);
    let key: SetKey = (write.request.namespace.clone(), claim.to_owned());
    let live = processed.and_then(|it| case.history.claims.at(&key, it.before));
    let waits = |live: &Claim| {
        let since = live.awaits_node;
        let is_newer = pod
            .created
            .zip(since)
            .is_some_and(|(created, since)| created > since);
        live.request == size && !live.terminating && since.is_some() && !is_newer
    };
    live.is_some_and(|live| waits(live))
}
