//! Situations of runs whose sets opt in.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane::route::Verb;

use crate::agent::Agent;
use crate::judges::Case;
use crate::plan::opt_ins::{HOLD_KEY, HOLDS, REQUESTED};
use crate::record::Commit;
use crate::views::{Pod, Set};

type Reached = BTreeSet<&'static str>;

/// Situations by the reason that a condition tells.
const REASONS: [(&str, &str); 20] = [
    ("CrashLoop", "a condition tells: CrashLoop"),
    ("EvictionRefused", "a condition tells: EvictionRefused"),
    ("ImagePull", "a condition tells: ImagePull"),
    ("InPlaceUpdate", "a condition tells: InPlaceUpdate"),
    ("InProgress", "a condition tells: InProgress"),
    ("MinReadySeconds", "a condition tells: MinReadySeconds"),
    ("OldRevisionBlocks", "a condition tells: OldRevisionBlocks"),
    ("OnDelete", "a condition tells: OnDelete"),
    ("Partition", "a condition tells: Partition"),
    (
        "PartitionKeepsBrokenPod",
        "a condition tells: PartitionKeepsBrokenPod",
    ),
    ("Paused", "a condition tells: Paused"),
    ("PodStarting", "a condition tells: PodStarting"),
    (
        "ProgressDeadlineExceeded",
        "a condition tells: ProgressDeadlineExceeded",
    ),
    ("RemovalGate", "a condition tells: RemovalGate"),
    ("Repair", "a condition tells: Repair"),
    ("RetryBackOff", "a condition tells: RetryBackOff"),
    ("RolloutLimit", "a condition tells: RolloutLimit"),
    ("Settled", "a condition tells: Settled"),
    ("Terminating", "a condition tells: Terminating"),
    ("UnavailableBudget", "a condition tells: UnavailableBudget"),
];

/// Evictions, and the events about replaced pods.
pub(super) fn requests(case: &Case<'_>, reached: &mut Reached) {
    for request in &case.record.requests {
        let code = request.processed.map(|it| it.code);
        if request.evicts() {
            match code {
                Some(201) => reached.insert("a blocking pod is evicted"),
                Some(403) => reached.insert("an eviction is forbidden"),
                Some(429) => reached.insert("an eviction is refused by a budget"),
                _ => false,
            };
        }
        let is_event = request.resource == "events" && request.verb == Some(Verb::Create);
        if is_event && request.json()["reason"] == "ReplacedBlockingPod" {
            reached.insert("a blocking pod is replaced");
        }
    }
    let mut latest = None;
    for sync in &case.record.syncs {
        let has_gates = case.plan.settings.allows_opt_ins(sync.process.instance);
        match latest.replace(has_gates) {
            Some(true) if !has_gates => reached.insert("an instance without the gates takes over"),
            Some(false) if has_gates => reached.insert("an instance with the gates takes over"),
            _ => false,
        };
    }
}

/// Labels of pods, and conditions of sets.
pub(super) fn commits(case: &Case<'_>, reached: &mut Reached) {
    let mut pods: BTreeMap<String, Pod> = BTreeMap::new();
    let mut sets: BTreeMap<String, Set> = BTreeMap::new();
    for commit in &case.record.commits {
        let key = &commit.entry.object.key;
        let name = (key.namespace.to_string(), key.name.to_string());
        let at = commit.entry.revision;
        if &*key.storage == "pods" {
            let now = case.history.pods.at(&name, at);
            if let (Some(before), Some(now)) = (pods.get(&name.1), now) {
                pod(commit, before, now, reached);
            }
            now.map(|now| pods.insert(name.1, Pod::clone(now)));
        } else if &*key.storage == "statefulsets" {
            let now = case.history.sets.at(&name, at);
            if let Some(now) = now {
                set(sets.get(&name.1), now, reached);
                sets.insert(name.1, Set::clone(now));
            }
        }
    }
}

fn pod(commit: &Commit, before: &Pod, now: &Pod, reached: &mut Reached) {
    if before.uid != now.uid {
        return;
    }
    let is_asked = |pod: &Pod| pod.labels.contains_key(REQUESTED);
    let is_held = |pod: &Pod| {
        let mut places = [&pod.labels, &pod.annotations].into_iter();
        places.any(|it| it.get(HOLD_KEY).is_some_and(|value| value == HOLDS))
    };
    match (is_asked(before), is_asked(now)) {
        (false, true) => reached.insert("the removal of a pod is requested"),
        (true, false) => reached.insert("the request to remove a pod is withdrawn"),
        _ => false,
    };
    let is_ours = commit.agent.parse::<Agent>().is_ok();
    if is_ours && is_asked(before) && now.terminating && !before.terminating {
        reached.insert(if is_held(before) {
            "a pod is removed after the gate's time"
        } else {
            "a pod is removed once its gate is lifted"
        });
    }
}

fn set(before: Option<&Set>, now: &Set, reached: &mut Reached) {
    for condition in &now.conditions {
        let found = REASONS.iter().find(|it| it.0 == condition.reason);
        reached.extend(found.map(|it| it.1));
    }
    let Some(before) = before.filter(|it| it.uid == now.uid) else {
        return;
    };
    let has = |set: &Set, kind: &str| set.conditions.iter().any(|it| it.kind == kind);
    for (kind, appears, vanishes) in [
        (
            "Stalled",
            "a set gets conditions",
            "the conditions of a set vanish",
        ),
        (
            "OptInsValid",
            "an annotation cannot be used",
            "an annotation is corrected",
        ),
    ] {
        match (has(before, kind), has(now, kind)) {
            (false, true) => reached.insert(appears),
            (true, false) => reached.insert(vanishes),
            _ => false,
        };
    }
}
