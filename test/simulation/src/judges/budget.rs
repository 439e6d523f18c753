//! Disruption budgets of updates.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane::route::Verb;

use super::case::NEWEST;
use super::{Case, Verdict, Write, opt_ins};
use crate::record::{Seen, SetKey};

/// B-1 and B-2: what one sync deletes for an update.
pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let Some((ordinal, pod)) = write.deleted_pod() else {
        return;
    };
    let (set, members, at) = (write.view.set, &write.view.members, write.request.sent);
    let is_opted = opt_ins::is_repair(case, write) || opt_ins::is_restart(case, write);
    if !set.range().contains(&ordinal) || pod.has_ended() || is_opted {
        return;
    }
    // A pod in flight that is given up goes first, and counts already.
    if opt_ins::is_marked(pod) {
        return;
    }
    let is_healthy = |it: u32| {
        members
            .get(&it)
            .is_some_and(|pod| pod.is_healthy(set.min_ready_seconds, write.now))
    };
    let unhealthy: Vec<u32> = set.range().filter(|it| !is_healthy(*it)).collect();
    let earlier = updated_before(write);
    let mut broken = |rule, why: String| {
        let message = format!("{}: {why}", write.named());
        verdict.broken(rule, at, message);
    };
    let gate = case.plan.settings.max_unavailable;
    if !set.parallel && !gate && !unhealthy.is_empty() {
        broken("B-1", format!("pods {unhealthy:?} are not available"));
    }
    let rule = if gate { "B-2" } else { "B-1" };
    // Since 1.37 unavailable pods of a parallel set go first, outside the budget.
    let outside = replaces_outside(case, write);
    let seemed_unhealthy = |it: u32| {
        let pod = members.get(&it);
        !pod.is_some_and(|pod| pod.is_healthy(set.min_ready_seconds, write.early))
    };
    if outside && seemed_unhealthy(ordinal) {
        let healthy = earlier.iter().find(|it| !seemed_unhealthy(**it));
        match healthy {
            None => return,
            Some(healthy) if !is_healthy(ordinal) => {
                broken(rule, format!("available pod {healthy} went before it"));
                return;
            }
            // It became available about the time of the sync, which took it for available.
            Some(_) => {}
        }
    }
    let earlier: BTreeSet<u32> = earlier
        .into_iter()
        .filter(|it| !outside || !seemed_unhealthy(*it))
        .collect();
    if gate {
        let budget = set.max_unavailable(true).saturating_sub(unhealthy.len());
        if earlier.len() >= budget {
            broken(
                "B-2",
                format!("budget {budget}, pods {unhealthy:?} are not available"),
            );
        }
    } else {
        let above = ordinal + 1..set.range().end;
        if let Some(above) = above.clone().find(|it| !is_healthy(*it)) {
            broken("B-1", format!("pod {above} above it is not available"));
        }
        if !earlier.is_empty() {
            broken("B-1", "the second deletion of its sync".to_owned());
        }
    }
    let passed_over = |it: u32| outside && it != ordinal && seemed_unhealthy(it);
    // The sync asks for the pod of this deletion as well.
    let is_held = |it: u32| it != ordinal && opt_ins::may_be_held(case, write, it);
    let is_in_place = |it: u32| it != ordinal && opt_ins::is_updated_in_place(write, it);
    let is_done =
        |it: u32| earlier.contains(&it) || passed_over(it) || is_held(it) || is_in_place(it);
    let next = next_outdated(case, write, is_done);
    if let Some(next) = next.filter(|next| *next != ordinal) {
        broken(rule, format!("pod {next} is to be updated first"));
    }
}

/// Reports whether a sync may replace unavailable pods beyond the budget.
fn replaces_outside(case: &Case<'_>, write: &Write<'_>) -> bool {
    let gate = case.plan.settings.max_unavailable;
    gate && write.view.set.parallel && case.minor(write.sync.process) >= NEWEST
}

/// Returns the pods that the sync deleted before for the update. Ended ones that it replaced are
/// among the unavailable ones.
fn updated_before(write: &Write<'_>) -> BTreeSet<u32> {
    let (set, members) = (write.view.set, &write.view.members);
    let deleted = write
        .earlier
        .iter()
        .filter(|it| it.resource == "pods" && it.verb == Some(Verb::Delete));
    let ordinals = deleted.filter_map(|it| super::write::ordinal(&it.name, &set.name));
    let is_update = |it: &u32| {
        let ended = members.get(it).is_some_and(|pod| pod.has_ended());
        set.range().contains(it) && !ended
    };
    ordinals.filter(is_update).collect()
}

/// Returns the highest outdated pod that the sync hasn't deleted yet. Ended ones are passed over:
/// they may go as such.
fn next_outdated(case: &Case<'_>, write: &Write<'_>, is_done: impl Fn(u32) -> bool) -> Option<u32> {
    let (set, members) = (write.view.set, &write.view.members);
    let update = super::progress::update_of(case, write)?;
    let all = members.values().copied();
    let process = write.sync.process;
    let partition = opt_ins::partition(case, process, set, all, Some(update.name.as_str()));
    let from = set.start.saturating_add(partition).max(set.start);
    let mut candidates = (from..set.range().end.max(from)).rev();
    candidates.find(|it| {
        let pod = members.get(it);
        let outdated = pod
            .is_some_and(|pod| pod.revision != update.name && !pod.terminating && !pod.has_ended());
        outdated && !is_done(*it)
    })
}

/// B-4: at no time more pods are down because of updates than the budget allows.
pub(super) fn judge_disruptions(case: &Case<'_>, verdict: &mut Verdict) {
    let mut down: BTreeMap<SetKey, Down> = BTreeMap::new();
    let deletions = deletions(case);
    for commit in &case.record.commits {
        let at = commit.entry.revision;
        let key = &commit.entry.object.key;
        let set = match &*key.storage {
            "pods" => key.name.rsplit_once('-').map(|(set, _)| set),
            "statefulsets" => Some(&*key.name),
            _ => None,
        };
        let set = set.map(|set| (key.namespace.to_string(), set.to_owned()));
        if let Some(down) = set.as_ref().and_then(|set| down.get_mut(set)) {
            // Until then, pods may have become available by the spec.
            let before = at.saturating_sub(1);
            down.forget_available(case, &key.namespace, (before, before), commit.at);
        }
        if let Some(deletion) = deletions.get(&at) {
            let (namespace, name) = &deletion.set;
            let down = down.entry(deletion.set.clone()).or_default();
            down.name.clone_from(name);
            let known = (deletion.seen.sets, at.saturating_sub(1));
            down.forget_available(case, namespace, known, commit.at);
            if let Some(max) = down.add(case, deletion, at) {
                let pods: Vec<&u32> = down.pods.keys().collect();
                let message = format!("{name}: pods {pods:?} are down for an update, limit {max}");
                verdict.broken("B-4", commit.at, message);
            }
        }
    }
}

/// Returns the deletions for updates, by their revisions of the store.
fn deletions(case: &Case<'_>) -> BTreeMap<u64, Deletion> {
    let mut deletions = BTreeMap::new();
    for write in case.writes() {
        let (Some((ordinal, pod)), Some(processed)) =
            (write.deleted_pod(), write.request.processed)
        else {
            continue;
        };
        let set = write.view.set;
        let may_be_down = replaces_outside(case, &write) || opt_ins::is_restart(case, &write);
        let is_down = may_be_down && !pod.is_healthy(set.min_ready_seconds, write.early);
        let is_down = is_down || opt_ins::is_repair(case, &write);
        let is_update =
            set.range().contains(&ordinal) && !pod.has_ended() && !pod.terminating && !is_down;
        if is_update && processed.after > processed.before {
            let deletion = Deletion {
                set: write.sync.set.clone(),
                ordinal,
                uid: pod.uid.clone(),
                seen: write.seen,
            };
            deletions.insert(processed.before + 1, deletion);
        }
    }
    deletions
}

/// A pod that was deleted for an update.
struct Deletion {
    set: SetKey,
    ordinal: u32,
    uid: String,
    /// The versions that the sync knew.
    seen: Seen,
}

/// A pod that is down.
struct DownPod {
    uid: String,
    /// Revision of its deletion.
    since: u64,
}

/// The pods of a set that are down for an update.
#[derive(Default)]
struct Down {
    /// The set.
    name: String,
    /// Its uid: another set of the name owes nothing for the pods of this one.
    set_uid: String,
    /// The ordinals, with the deleted pods.
    pods: BTreeMap<u32, DownPod>,
    /// The generation for which they are down.
    generation: i64,
}

impl Down {
    /// Drops the pods whose replacements are available at this time, by one of the specs stored
    /// between two revisions.
    fn forget_available(
        &mut self,
        case: &Case<'_>,
        namespace: &str,
        (from, revision): (u64, u64),
        at: std::time::Duration,
    ) {
        let name = &self.name;
        let key = (namespace.to_owned(), name.clone());
        let sets = case.history.sets.during(&key, from, revision);
        let seconds = sets.map(|set| set.min_ready_seconds).min();
        let seconds = seconds.unwrap_or_default();
        // The instance's clock may be ahead.
        let now = case.clock_at(at + case.skew_max);
        self.pods.retain(|ordinal, down| {
            let pod = (namespace.to_owned(), format!("{name}-{ordinal}"));
            let pod = case.history.pods.at(&pod, revision);
            !pod.is_some_and(|pod| pod.uid != down.uid && pod.is_healthy(seconds, now))
        });
    }

    /// Adds a pod. Returns the limit if there are more now.
    fn add(&mut self, case: &Case<'_>, deletion: &Deletion, at: u64) -> Option<usize> {
        let (sets, key) = (&case.history.sets, &deletion.set);
        let known: Vec<_> = sets.during(key, deletion.seen.sets, at).collect();
        let gate = case.plan.settings.max_unavailable;
        let newest = sets.at(key, deletion.seen.sets)?;
        if newest.uid != self.set_uid {
            self.set_uid.clone_from(&newest.uid);
            self.pods.clear();
        }
        // Without the gate a parallel set replaces a pod of its new template even if a lower pod
        // is still down for the previous one.
        if newest.parallel && !gate && newest.generation != self.generation {
            self.pods.clear();
        }
        self.generation = newest.generation;
        // A user may want a pod again that the sync knew as condemned.
        self.pods.retain(|it, _| newest.range().contains(it));
        // Syncs that don't wait for their process's own writes may not know them, as upstream's.
        if !case.plan.settings.consistency {
            self.pods.retain(|_, down| down.since <= deletion.seen.pods);
        }
        let down = DownPod {
            uid: deletion.uid.clone(),
            since: at,
        };
        self.pods.insert(deletion.ordinal, down);
        let max = known.iter().map(|set| set.max_unavailable(gate)).max()?;
        (self.pods.len() > max).then_some(max)
    }
}
