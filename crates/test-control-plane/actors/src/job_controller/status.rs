//! A job and its pods as one sync sees them, and the job's status.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::time;
use kube_test_control_plane_api::members::{list_at, number_at, text, text_at};
use kube_test_control_plane_api::object::Object;
use serde_json::{Value, json};

use super::finish::{Target, holds};
use super::indexes;
use super::pods::JobPod;

/// The controller of jobs, as in `spec.managedBy`.
const OWN_NAME: &str = "kubernetes.io/job-controller";

/// The pause after a first failure; it doubles with each other one.
const FIRST_PAUSE: Duration = Duration::from_secs(10);

/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// A job and its pods.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) job: Value,
    pub(super) pods: Vec<JobPod>,
    pub(super) now: Timestamp,
    pub(super) is_deleting: bool,
    pub(super) is_suspended: bool,
    pub(super) is_indexed: bool,
    /// The wanted number of successes; `None` if one ends the job.
    pub(super) completions: Option<i64>,
}

impl View {
    pub(super) fn new(job: &Object, pods: Vec<JobPod>, now: Timestamp) -> Self {
        let is_deleting = job.deleting;
        let job = job.value();
        let spec = |member: &str| job.pointer(&format!("/spec/{member}"));
        Self {
            is_suspended: spec("suspend") == Some(&json!(true)),
            is_indexed: spec("completionMode") == Some(&json!("Indexed")),
            completions: spec("completions").and_then(Value::as_i64),
            is_deleting,
            now,
            pods,
            job,
        }
    }

    /// Reports whether another controller runs the job.
    pub(super) fn is_foreign(&self) -> bool {
        !matches!(text_at(&self.job, "/spec/managedBy"), "" | OWN_NAME)
    }

    /// Returns a condition that holds.
    pub(super) fn condition(&self, kind: &str) -> Option<&Value> {
        let mut conditions = list_at(&self.job, "/status/conditions");
        conditions.find(|it| text(it, "type") == kind && text(it, "status") == "True")
    }

    pub(super) fn completions_count(&self) -> u32 {
        let completions = self.completions.unwrap_or_default();
        u32::try_from(completions).unwrap_or_default()
    }

    fn noted(&self, member: &str) -> BTreeSet<&str> {
        let noted = list_at(
            &self.job,
            &format!("/status/uncountedTerminatedPods/{member}"),
        );
        noted.filter_map(Value::as_str).collect()
    }

    /// Returns the uids of the ended pods that no counter includes yet.
    fn uncounted(&self, has_succeeded: bool) -> BTreeSet<&str> {
        let member = if has_succeeded { "succeeded" } else { "failed" };
        let tracked = self
            .pods
            .iter()
            .filter(|pod| pod.is_tracked && pod.is_over());
        let ended = tracked.filter(|pod| pod.has_succeeded() == has_succeeded);
        let mut uids: BTreeSet<&str> = ended.map(|pod| &*pod.uid).collect();
        uids.extend(self.noted(member));
        uids
    }

    fn counted(&self, member: &str, has_succeeded: bool) -> i64 {
        let uncounted = self.uncounted(has_succeeded).len();
        let counted = number_at(&self.job, &format!("/status/{member}"));
        counted.saturating_add(i64::try_from(uncounted).unwrap_or(i64::MAX))
    }

    pub(super) fn failed(&self) -> i64 {
        self.counted("failed", false)
    }

    pub(super) fn succeeded(&self) -> i64 {
        if self.is_indexed {
            let count = self.succeeded_indexes().len();
            return i64::try_from(count).unwrap_or(i64::MAX);
        }
        self.counted("succeeded", true)
    }

    pub(super) fn succeeded_indexes(&self) -> BTreeSet<u32> {
        let count = self.completions_count();
        let noted = text_at(&self.job, "/status/completedIndexes");
        let mut found = indexes::parse(noted, count);
        let succeeded = self.pods.iter().filter(|pod| pod.has_succeeded());
        found.extend(
            succeeded
                .filter_map(|pod| pod.index)
                .filter(|index| *index < count),
        );
        found
    }

    /// Returns the number of pods that should run now.
    ///
    /// Upstream: `manageJob`, the part that computes `wantActive`.
    pub(super) fn wanted_active(&self) -> usize {
        if self.is_suspended {
            return 0;
        }
        let active = self.pods.iter().filter(|pod| pod.is_active()).count();
        let parallelism = number_at(&self.job, "/spec/parallelism");
        let succeeded = self.succeeded();
        let wanted = match self.completions {
            None if succeeded > 0 => return active,
            None => parallelism,
            Some(completions) => (completions - succeeded).min(parallelism),
        };
        let wanted = usize::try_from(wanted).unwrap_or_default();
        if text_at(&self.job, "/spec/podReplacementPolicy") == "Failed" {
            let ending = self
                .pods
                .iter()
                .filter(|pod| pod.is_deleting && !pod.is_over());
            return wanted.saturating_sub(ending.count());
        }
        wanted
    }

    /// Returns the time until the next pod may be created, after failures.
    ///
    /// Upstream: `getRemainingTime`
    pub(super) fn back_off(&self) -> Duration {
        let ended = |has_succeeded: bool| {
            let over = self.pods.iter().filter(|pod| pod.is_over());
            let ended = over.filter(move |pod| pod.has_succeeded() == has_succeeded);
            ended.filter_map(|pod| pod.ended)
        };
        let last_success = ended(true).max();
        let failures: Vec<Timestamp> = ended(false)
            .filter(|end| Some(*end) > last_success)
            .collect();
        let Some(last) = failures.iter().max() else {
            return Duration::ZERO;
        };
        let doublings = u32::try_from(failures.len() - 1)
            .unwrap_or(u32::MAX)
            .min(10);
        let pause = (FIRST_PAUSE * 2u32.pow(doublings)).min(LONGEST_PAUSE);
        let passed = self.now.duration_since(*last).max(SignedDuration::ZERO);
        pause.saturating_sub(passed.unsigned_abs())
    }
}

/// Returns the status that names the pods to count, unless it names them already.
pub(super) fn uncounted(view: &View) -> Option<Value> {
    let [succeeded, failed] = [true, false].map(|it| view.uncounted(it));
    if succeeded == view.noted("succeeded") && failed == view.noted("failed") {
        return None;
    }
    Some(json!({"uncountedTerminatedPods": {"succeeded": succeeded, "failed": failed}}))
}

/// Returns the changed status fields, with the uncounted finished pods added to the counters.
///
/// Upstream: `trackJobStatusAndRemoveFinalizers`, `enactJobFinished`
pub(super) fn difference(view: &View, target: Option<&Target>, is_still: bool) -> Option<Value> {
    let count = |of: fn(&&JobPod) -> bool| view.pods.iter().filter(of).count();
    let terminating = count(|pod| pod.is_deleting && !pod.is_over());
    let mut status = json!({
        "active": count(|pod| pod.is_active()),
        "ready": count(|pod| pod.is_active() && pod.is_ready),
        "terminating": terminating,
        "succeeded": view.succeeded(),
        "failed": view.failed(),
    });
    if view.is_indexed {
        let indexes = indexes::print(&view.succeeded_indexes());
        status["completedIndexes"] = Some(indexes).filter(|it| !it.is_empty()).into();
    }
    let now = json!(time::format_seconds(view.now));
    let started = text_at(&view.job, "/status/startTime");
    match (view.is_suspended, started) {
        (false, "") => status["startTime"] = now.clone(),
        (true, known) if !known.is_empty() => status["startTime"] = Value::Null,
        _ => {}
    }
    let mut conditions: Vec<Value> = suspension(view).into_iter().collect();
    if let Some(target) = target {
        let kinds = if target.has_succeeded {
            ["SuccessCriteriaMet", "Complete"]
        } else {
            ["FailureTarget", "Failed"]
        };
        let is_over = is_still && terminating == 0;
        let reached = if is_over { &kinds[..] } else { &kinds[..1] };
        let new = reached.iter().filter(|kind| !holds(view, kind));
        conditions.extend(
            new.map(|kind| condition(view, kind, "True", (&target.reason, &target.message))),
        );
        if is_over && target.has_succeeded {
            status["completionTime"] = now;
        }
    }
    let mut changed = crate::replica_set_controller::status::difference(&view.job, status.clone());
    if !conditions.is_empty() {
        changed["conditions"] = all_conditions(view, conditions);
    }
    let is_noted = [true, false]
        .iter()
        .all(|it| view.uncounted(*it).is_empty());
    let is_known = view
        .job
        .pointer("/status/uncountedTerminatedPods")
        .is_some();
    if !is_noted || !is_known {
        changed["uncountedTerminatedPods"] = json!({"succeeded": null, "failed": null});
    }
    if changed == json!({}) {
        return None;
    }
    changed["ready"] = status["ready"].clone();
    changed["terminating"] = status["terminating"].clone();
    Some(changed)
}

/// Returns the condition of a job that was suspended or resumed.
fn suspension(view: &View) -> Option<Value> {
    match (view.is_suspended, holds(view, "Suspended")) {
        (true, false) => Some(condition(
            view,
            "Suspended",
            "True",
            ("JobSuspended", "Job suspended"),
        )),
        (false, true) => Some(condition(
            view,
            "Suspended",
            "False",
            ("JobResumed", "Job resumed"),
        )),
        _ => None,
    }
}

fn condition(view: &View, kind: &str, status: &str, (reason, message): (&str, &str)) -> Value {
    let now = time::format_seconds(view.now);
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": now,
        "lastTransitionTime": now,
    })
}

/// Returns the job's conditions with these merged in; a patch keeps their order.
fn all_conditions(view: &View, new: Vec<Value>) -> Value {
    let known = list_at(&view.job, "/status/conditions");
    let mut all: Vec<Value> = known.cloned().collect();
    for condition in new {
        let same = all.iter_mut().find(|it| it["type"] == condition["type"]);
        match same {
            Some(same) => *same = condition,
            None => all.push(condition),
        }
    }
    all.into()
}
