//! Disruption budgets of updates.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane::route::Verb;

use super::Verdict;
use super::case::{Case, Write};
use crate::record::SetKey;

/// B-1 and B-2: what one sync deletes for an update.
pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let Some((ordinal, pod)) = write.deleted_pod() else {
        return;
    };
    let (set, members, at) = (write.view.set, &write.view.members, write.request.sent);
    if !set.range().contains(&ordinal) || pod.has_ended() {
        return;
    }
    let is_healthy = |it: u32| {
        members
            .get(&it)
            .is_some_and(|pod| pod.is_healthy(set.min_ready_seconds, write.now))
    };
    let unhealthy: Vec<u32> = set.range().filter(|it| !is_healthy(*it)).collect();
    let earlier = write.earlier.iter().filter(|it| {
        it.resource == "pods"
            && it.verb == Some(Verb::Delete)
            && super::case::ordinal(&it.name, &set.name).is_some_and(|it| set.range().contains(&it))
    });
    // Ended pods that the sync deleted before are among the unavailable ones.
    let ended = |name: &str| {
        let ordinal = super::case::ordinal(name, &set.name);
        let pod = ordinal.and_then(|ordinal| members.get(&ordinal));
        pod.is_some_and(|pod| pod.has_ended())
    };
    let before = earlier.filter(|it| !ended(&it.name)).count();
    let mut broken = |rule, why: String| {
        let message = format!("{}: {why}", write.named());
        verdict.broken(rule, at, message);
    };
    if !set.parallel && !case.plan.settings.max_unavailable && !unhealthy.is_empty() {
        broken("B-1", format!("pods {unhealthy:?} are not available"));
    }
    if case.plan.settings.max_unavailable {
        let budget = set.max_unavailable(true).saturating_sub(unhealthy.len());
        if before >= budget {
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
        if before > 0 {
            broken("B-1", "the second deletion of its sync".to_owned());
        }
    }
}

/// B-4: at no time more pods are down because of updates than the budget allows.
pub(super) fn judge_disruptions(case: &Case<'_>, verdict: &mut Verdict) {
    let mut down: BTreeMap<SetKey, Down> = BTreeMap::new();
    let mut deletions: BTreeMap<u64, Deletion> = BTreeMap::new();
    for write in case.writes() {
        let (Some((ordinal, pod)), Some(processed)) =
            (write.deleted_pod(), write.request.processed)
        else {
            continue;
        };
        let set = write.view.set;
        let is_update = set.range().contains(&ordinal) && !pod.has_ended() && !pod.terminating;
        if is_update && processed.after > processed.before {
            let deletion = Deletion {
                set: write.sync.set.clone(),
                ordinal,
                seen: write.sync.seen.sets,
            };
            deletions.insert(processed.after, deletion);
        }
    }
    for commit in &case.record.commits {
        let at = commit.entry.revision;
        let key = &commit.entry.object.key;
        if let Some(deletion) = deletions.get(&at) {
            let down = down.entry(deletion.set.clone()).or_default();
            if let Some(max) = down.add(case, deletion, at) {
                let Down { pods, .. } = down;
                let name = &deletion.set.1;
                let message = format!("{name}: pods {pods:?} are down for an update, limit {max}");
                verdict.broken("B-4", commit.at, message);
            }
        }
        if key.storage == "pods" {
            let pod_key = (key.namespace.to_string(), key.name.to_string());
            let Some(pod) = case.history.pods.at(&pod_key, at) else {
                continue;
            };
            let Some((set, _)) = pod.name.rsplit_once('-') else {
                continue;
            };
            let set_key = (pod_key.0.clone(), set.to_owned());
            let Some(down) = down.get_mut(&set_key) else {
                continue;
            };
            // A time later than now makes the pod count as available once its seconds are over.
            if pod.ready.is_some() && !pod.terminating {
                down.pods.retain(|it| Some(*it) != pod.ordinal(set));
            }
        }
    }
}

/// A pod that was deleted for an update.
struct Deletion {
    set: SetKey,
    ordinal: u32,
    /// The version of the set that the sync knew.
    seen: u64,
}

/// The pods of a set that are down for an update.
#[derive(Default)]
struct Down {
    pods: BTreeSet<u32>,
    /// The generation for which they are down.
    generation: i64,
}

impl Down {
    /// Adds a pod. Returns the limit if there are more now.
    fn add(&mut self, case: &Case<'_>, deletion: &Deletion, at: u64) -> Option<usize> {
        let (sets, key) = (&case.history.sets, &deletion.set);
        let changes = sets.changes(key, deletion.seen, at);
        let known = changes.filter_map(|(_, set)| set);
        let known: Vec<_> = known.chain(sets.at(key, deletion.seen)).collect();
        let gate = case.plan.settings.max_unavailable;
        let newest = sets.at(key, deletion.seen)?;
        // Without the gate a parallel set replaces a pod of its new template even if a lower pod
        // is still down for the previous one.
        if newest.parallel && !gate && newest.generation != self.generation {
            self.pods.clear();
        }
        self.generation = newest.generation;
        let wanted = |it: &u32| known.iter().any(|set| set.range().contains(it));
        self.pods.retain(wanted);
        self.pods.insert(deletion.ordinal);
        let max = known.iter().map(|set| set.max_unavailable(gate)).max()?;
        (self.pods.len() > max).then_some(max)
    }
}
