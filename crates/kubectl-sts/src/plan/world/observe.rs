//! The course of a plan, from the audit log of the copy.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::audit::{AuditEntry, AuditMark};
use kube_test_control_plane::clock::{Clock as _, TokioClock};
use serde_json::Value;

use crate::model::Set;
use crate::plan::change::text;
use crate::plan::loss::Ending;
use crate::plan::outcome::{PlannedBudget, Rejected};
use crate::plan::situation::Situation;
use crate::plan::steps::CONTROLLER;

/// Least time without writes after which nothing more is expected.
const QUIET_MIN: Duration = Duration::from_secs(60);
/// Longest planned time.
const PLAN_MAX: Duration = Duration::from_secs(24 * 3600);

/// The events after the change.
pub(super) struct Observed {
    pub(super) entries: Vec<AuditEntry>,
    pub(super) ready: usize,
    pub(super) least_ready: usize,
    pub(super) all_at_once: bool,
    pub(super) end: Timestamp,
}

/// Waits until the writes have ended.
pub(super) async fn observe(
    plane: &TestControlPlane,
    clock: &TokioClock,
    situation: &Situation<'_>,
    set: &Set,
    estimate: Duration,
    mut mark: AuditMark,
) -> anyhow::Result<Observed> {
    let min_ready = u64::try_from(set.spec.min_ready_seconds).unwrap_or_default();
    let quiet = (QUIET_MIN + estimate * 2 + Duration::from_secs(min_ready)).min(PLAN_MAX);
    let pause = (quiet / 600).max(Duration::from_secs(1));
    let now_ready = situation.set().map_or(0, |set| {
        let pods = situation.snapshot.pods_of(set);
        pods.filter(|pod| pod.is_ready()).count()
    });
    let may_be_down = now_ready < 2 || set.replicas() == 0;
    let begin = clock.now();
    let (audit, mut end, mut least_ready) = (plane.server().audit(), begin, now_ready);
    let mut entries = Vec::new();
    let elapsed = |since: Timestamp| clock.now().duration_since(since);
    let limit = |limit: Duration| SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX);
    while elapsed(end) < limit(quiet) && elapsed(begin) < limit(PLAN_MAX) {
        tokio::time::sleep(pause).await;
        let next = audit.mark();
        let fresh = audit
            .since(mark, AuditEntry::is_change)
            .context("follow the simulation")?;
        mark = next;
        let is_own = |entry: &AuditEntry| entry.namespace == situation.namespace;
        let last = fresh
            .iter()
            .filter(|entry| is_own(entry))
            .map(|entry| entry.received)
            .max();
        if let Some(last) = last {
            end = end.max(last);
            least_ready = least_ready.min(ready(plane, situation.namespace));
        }
        entries.extend(fresh);
    }
    Ok(Observed {
        entries,
        ready: now_ready,
        least_ready,
        all_at_once: !may_be_down && least_ready == 0,
        end,
    })
}

/// The budgets that select the set's pods.
pub(super) fn budgets(situation: &Situation<'_>, observed: &Observed) -> Vec<PlannedBudget> {
    let set = situation.set().into_iter();
    let budgets = set.flat_map(|set| situation.snapshot.budgets_of(set));
    budgets
        .map(|budget| {
            let required = budget.status.desired_healthy;
            PlannedBudget {
                name: budget.metadata.name.clone(),
                required,
                is_broken: usize::try_from(required).is_ok_and(|it| observed.least_ready < it),
            }
        })
        .collect()
}

/// Number of ready pods.
fn ready(plane: &TestControlPlane, namespace: &str) -> usize {
    let (_, pods) = plane.server().store().list("pods", namespace);
    let is_ready = |pod: &Value| {
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
    };
    pods.iter().filter(|pod| is_ready(&pod.value())).count()
}

/// The claims and pods of the copy.
pub(super) fn ending(plane: &TestControlPlane, namespace: &str) -> Ending {
    let store = plane.server().store();
    let uid = |object: &Value| text(object, "/metadata/uid").to_owned();
    let claims = store.list("persistentvolumeclaims", namespace).1;
    let claims = claims.iter().map(|claim| {
        let claim = claim.value();
        let is_deleted = claim.pointer("/metadata/deletionTimestamp").is_some();
        let name = text(&claim, "/metadata/name").to_owned();
        (name, (uid(&claim), is_deleted))
    });
    let pods = store.list("pods", namespace).1;
    Ending {
        claims: claims.collect(),
        pods: pods
            .iter()
            .map(|pod| uid(&pod.value()))
            .collect::<BTreeSet<_>>(),
    }
}

/// The first object that the controller couldn't create because of the copy's validation.
pub(super) fn rejected(plane: &TestControlPlane, namespace: &str) -> Option<Rejected> {
    const INVALID: u16 = 422;
    let audit = plane.server().audit();
    let entries = audit.matching(|entry| {
        entry.code == INVALID
            && entry.user == CONTROLLER
            && entry.namespace == namespace
            && entry.verb.name() == "create"
    });
    let entry = entries.into_iter().next()?;
    Some(Rejected {
        body: entry.body_value(),
        resource: entry.resource,
        name: entry.name,
        message: entry.message,
    })
}
