//! The end of a job: success, failure, and the deletion after it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube_apimachinery::time;
use kube_test_control_plane_api::members::{list_at, text, text_at};

use super::pods::JobPod;
use super::view::View;

/// The cause of a job's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) has_succeeded: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Target {
    fn new(has_succeeded: bool, reason: &str, message: &str) -> Self {
        Self {
            has_succeeded,
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }
}

/// Returns the time of a job's end, if it has ended.
///
/// Upstream: `IsJobFinished`
pub(super) fn end(view: &View) -> Option<Timestamp> {
    let ended = ["Complete", "Failed"]
        .iter()
        .find_map(|kind| view.condition(kind))?;
    let time = time::parse(text(ended, "lastTransitionTime"));
    Some(time.unwrap_or(view.now))
}

/// Returns the time until an ended job is deleted; `None` if it stays.
///
/// Upstream: the controller `TTLAfterFinished`
pub(super) fn time_to_live(view: &View, end: Timestamp) -> Option<Duration> {
    let seconds = view
        .job
        .pointer("/spec/ttlSecondsAfterFinished")?
        .as_i64()?;
    Some(left(view, end, seconds))
}

/// Returns the time that a running job has left.
///
/// Upstream: `pastActiveDeadline`
pub(super) fn time_to_deadline(view: &View) -> Option<Duration> {
    let seconds = view.job.pointer("/spec/activeDeadlineSeconds")?.as_i64()?;
    let start = time::parse(text_at(&view.job, "/status/startTime")).ok()?;
    (!view.is_suspended).then(|| left(view, start, seconds))
}

fn left(view: &View, since: Timestamp, seconds: i64) -> Duration {
    let end = since.checked_add(SignedDuration::from_secs(seconds));
    let left = end.unwrap_or(Timestamp::MAX).duration_since(view.now);
    left.max(SignedDuration::ZERO).unsigned_abs()
}

/// Returns the end that a job goes to, if any.
pub(super) fn target(view: &View) -> Option<Target> {
    for (kind, has_succeeded) in [("SuccessCriteriaMet", true), ("FailureTarget", false)] {
        if let Some(known) = view.condition(kind) {
            let [reason, message] = ["reason", "message"].map(|it| text(known, it));
            return Some(Target::new(has_succeeded, reason, message));
        }
    }
    if is_over_limit(view) {
        let message = "Job has reached the specified backoff limit";
        return Some(Target::new(false, "BackoffLimitExceeded", message));
    }
    if time_to_deadline(view) == Some(Duration::ZERO) {
        let message = "Job was active longer than specified deadline";
        return Some(Target::new(false, "DeadlineExceeded", message));
    }
    let has_active = view.pods.iter().any(JobPod::is_active);
    let succeeded = view.succeeded();
    let is_complete = match view.completions {
        None => succeeded > 0 && !has_active,
        Some(completions) => succeeded >= completions && !has_active,
    };
    let message = "Reached expected number of succeeded pods";
    is_complete.then(|| Target::new(true, "CompletionsReached", message))
}

/// Upstream: `exceedsBackoffLimit`, `pastBackoffLimitOnFailure`
fn is_over_limit(view: &View) -> bool {
    let limit = view
        .job
        .pointer("/spec/backoffLimit")
        .and_then(serde_json::Value::as_i64);
    let Some(limit) = limit else { return false };
    if view.failed() > limit {
        return true;
    }
    if text_at(&view.job, "/spec/template/spec/restartPolicy") != "OnFailure" {
        return false;
    }
    let running = view.pods.iter().filter(|pod| !pod.is_over());
    let restarts: i64 = running.map(|pod| pod.restarts).sum();
    restarts > 0 && restarts >= limit
}

/// Reports whether a condition holds.
pub(super) fn holds(view: &View, kind: &str) -> bool {
    let mut conditions = list_at(&view.job, "/status/conditions");
    conditions.any(|it| text(it, "type") == kind && text(it, "status") == "True")
}
