//! The search for situations of a run with a fence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use statefulset_fence::Policy;

use crate::agent::Process;
use crate::api_servers::FenceState;
use crate::judges::{Case, belongs};
use crate::world::NAMESPACE;

type Reached = BTreeSet<&'static str>;

/// Changes of the label and the policies.
pub(super) fn changes(case: &Case<'_>, reached: &mut Reached) {
    let mut before = FenceState::default();
    for change in &case.record.fence {
        let now = &change.state;
        let situation = match (before.is_labelled, now.is_labelled) {
            (false, true) => Some("a namespace is handed over during a rollout"),
            (true, false) => Some("a namespace is handed back during a rollout"),
            _ if before.stands() && !now.stands() => Some("a policy is lost during a rollout"),
            _ if !before.stands() && now.stands() => Some("a policy returns during a rollout"),
            _ => None,
        };
        reached.extend(situation.filter(|_| is_rolling(case, change.at)));
        before = now.clone();
    }
}

/// Reports whether a set has pods of several revisions.
fn is_rolling(case: &Case<'_>, at: Duration) -> bool {
    let revision = case.revision_at(at);
    let mut sets = case.history.sets.all_at(NAMESPACE, revision);
    sets.any(|set| {
        let pods = case.history.pods.all_at(NAMESPACE, revision);
        let revisions = pods
            .filter(|pod| belongs(set, pod))
            .map(|pod| &pod.revision);
        revisions.collect::<BTreeSet<_>>().len() > 1
    })
}

/// Denied writes, ends of the service, and processes that take over from others.
pub(super) fn writers(case: &Case<'_>, reached: &mut Reached) {
    let is_built_in = |process: Process| case.plan.settings.is_built_in(process.instance);
    for request in case.record.requests.iter().filter(|it| it.is_write()) {
        reached.extend(request.denied.map(|policy| match policy {
            Policy::Fence => "the fence denies a write of the built-in controller",
            Policy::Mirror => "the mirror denies a write of an instance",
        }));
    }
    let falls = case.record.falls.iter();
    reached.extend(falls.filter_map(|fall| fallen(fall.reason)));
    let mut latest: BTreeMap<bool, Process> = BTreeMap::new();
    for sync in &case.record.syncs {
        let side = is_built_in(sync.process);
        let before = latest.insert(side, sync.process);
        if before.is_some_and(|before| before.instance != sync.process.instance) {
            reached.insert(if side {
                "another process of the built-in controller takes over"
            } else {
                "another instance takes over"
            });
        }
    }
}

/// Returns the situation of a fall for this reason.
fn fallen(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "denied" => "the service ends: denied",
        "foreign" => "the service ends: foreign",
        "label" => "the service ends: label",
        "left" => "the service ends: left",
        "policy" => "the service ends: policy",
        "probe" => "the service ends: probe",
        _ => return None,
    })
}
