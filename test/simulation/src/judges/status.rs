//! Consistency, monotonicity and freshness of statuses.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};

use super::progress::{comes_to_status, update_after};
use super::{Case, Verdict, View, Write, opt_ins};
use crate::record::{Request, Sync};
use crate::views::{Pod, Set, Status};

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let request = write.request;
    if request.subresource != "status" {
        return;
    }
    let body = request.json();
    let status = body.get("status").cloned().unwrap_or_else(|| json!({}));
    let number = |member: &str| status.get(member).and_then(Value::as_i64).unwrap_or(0);
    let (replicas, ready) = (number("replicas"), number("readyReplicas"));
    let available = number("availableReplicas");
    let (current, updated) = (number("currentReplicas"), number("updatedReplicas"));
    let sensible = (0..=ready).contains(&available)
        && ready <= replicas
        && (0..=replicas).contains(&current)
        && (0..=replicas).contains(&updated);
    let observed = number("observedGeneration");
    if !sensible || observed > write.view.set.generation {
        let message = format!("{}: {status}", write.named());
        verdict.broken("T-1", request.sent, message);
    }
    let stored = request
        .processed
        .filter(|it| it.code < 300)
        .and_then(|it| case.history.sets.at(&write.sync.set, it.before));
    // Behind a fence another controller may have written since: upstream's repeats the status that it
    // computed before, and its next sync corrects that.
    let is_repeated = case.is_built_in(write.sync.process) && write.follows(Verb::Update);
    if let Some(stored) = stored
        && !is_repeated
        && stored.uid == write.view.set.uid
        && observed < stored.status.observed_generation
    {
        let message = format!(
            "{}: observed generation {} -> {observed}",
            write.named(),
            stored.status.observed_generation
        );
        verdict.broken("T-1", request.sent, message);
    }
    // T-3: nothing is written that the sync knew to be stored already.
    let (known, written) = (write.view.set, Set::read(&body));
    if written.status == known.status && opt_ins::same(&written.conditions, &known.conditions) {
        let message = format!("{}: the status does not change", write.named());
        verdict.broken("T-3", request.sent, message);
    }
}

/// T-2: a sync that comes to its status writes its findings, even if its other writes fail, and
/// writes nothing if that is stored.
pub(super) fn judge_syncs(case: &Case<'_>, verdict: &mut Verdict) {
    // Equal revisions, between which the status would have to choose, exist only then.
    if !case.plan.settings.consistency {
        return;
    }
    for (number, sync) in case.ended_syncs() {
        let requests: Vec<&Request> = case.requests_of(number).collect();
        let Some(view) = case
            .view(number)
            .filter(|_| comes_to_status(case, sync, &requests))
        else {
            continue;
        };
        let Some(expected) = Expected::of(case, &view, sync, &requests) else {
            continue;
        };
        let written = requests.iter().find(|it| it.subresource == "status");
        let status = written.map(|it| Set::read(&it.json()).status);
        let shown = status.as_ref().unwrap_or(&view.set.status);
        if !expected.allows(shown) {
            let wrote = if written.is_some() { "wrote" } else { "kept" };
            let message = format!(
                "set {}: a sync {wrote} {shown:?} instead of {expected:?}",
                view.set.name
            );
            verdict.broken("T-2", sync.at, message);
        }
    }
}

/// The status that a sync must record. As in upstream, pods that it created don't count yet.
#[derive(Debug)]
struct Expected {
    generation: i64,
    replicas: i64,
    ready: i64,
    available: RangeInclusive<i64>,
    current: RangeInclusive<i64>,
    updated: i64,
    current_revision: String,
    update_revision: String,
}

impl Expected {
    fn of(case: &Case<'_>, view: &View<'_>, sync: &Sync, requests: &[&Request]) -> Option<Self> {
        let set = view.set;
        let update = update_after(case, view, requests, sync.process)?
            .name
            .clone();
        let recorded = &set.status.current_revision;
        let known = view.revisions.iter().any(|it| it.name == *recorded);
        let current = if known {
            recorded.clone()
        } else {
            update.clone()
        };
        let members = || view.members.values().filter(|pod| pod.is_created());
        let count =
            |wanted: &dyn Fn(&Pod) -> bool| number(members().filter(|it| wanted(it)).count());
        let of_revision = |pod: &Pod, name: &str| !pod.terminating && pod.revision == name;
        let deleted = number(deleted_for_update(view, requests));
        let availability = |now: Timestamp| {
            count(&|pod| pod.is_ready() && pod.is_available(set.min_ready_seconds, now))
        };
        let (now, skew) = (case.clock_at(sync.at), case.skew_max);
        let early = case.early(sync.at);
        let late = now.checked_add(skew).unwrap_or(now);
        let mut expected = Self {
            generation: set.generation,
            replicas: number(members().count()),
            ready: count(&Pod::is_ready),
            available: availability(early)..=availability(late),
            current: 0..=count(&|pod| of_revision(pod, &current)),
            updated: count(&|pod| of_revision(pod, &update)),
            current_revision: current,
            update_revision: update,
        };
        let current = *expected.current.end();
        let (least, choices) = (
            (current - deleted).max(0),
            opt_ins::choices(case, sync.process, set),
        );
        // A deletion for a repair or a restart doesn't count.
        let repairs = choices.is_some_and(|it| it.repair.is_some() || it.restarts());
        expected.current = least..=if repairs { current } else { least };
        let wanted = i64::from(set.replicas);
        let counts = [expected.updated, expected.ready, expected.replicas];
        if case.completes(sync.process, set) && counts == [wanted; 3] {
            expected.current = expected.updated..=expected.updated;
            expected
                .current_revision
                .clone_from(&expected.update_revision);
        }
        Some(expected)
    }

    fn allows(&self, status: &Status) -> bool {
        status.observed_generation == self.generation
            && status.replicas == self.replicas
            && status.ready == self.ready
            && self.available.contains(&status.available)
            && self.current.contains(&status.current)
            && status.updated == self.updated
            && status.current_revision == self.current_revision
            && status.update_revision == self.update_revision
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns the number of deletions for an update that the sync knows of. In a parallel set an ended
/// pod of an old revision goes for both reasons, as in upstream.
fn deleted_for_update(view: &View<'_>, requests: &[&Request]) -> usize {
    let set = view.set;
    let deletions = |pod: &Pod| {
        let deleted = requests.iter().filter(|it| {
            let deletes = it.verb == Some(Verb::Delete) && it.resource == "pods";
            let known = it
                .status
                .is_some_and(|status| status < 300 || status == 404);
            deletes && known && it.name == pod.name
        });
        deleted.count().saturating_sub(usize::from(pod.has_ended()))
    };
    let wanted = view.members.range(set.range());
    wanted.map(|(_, pod)| deletions(pod)).sum()
}
