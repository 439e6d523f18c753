//! The conditions of a deployment.

use std::time::Duration;

use jiff::SignedDuration;
use kube_apimachinery::time;
use kube_test_control_plane_api::members::{list_at, text};
use serde_json::{Value, json};

use super::view::View;

/// The reason of a deployment whose last rollout has ended.
pub(super) const AVAILABLE: &str = "NewReplicaSetAvailable";
/// The reason of a rollout that takes too long.
pub(super) const TIMED_OUT: &str = "ProgressDeadlineExceeded";

/// The `progressDeadlineSeconds` that disables the deadline.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// A condition to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Condition {
    pub(super) fn progressing(status: &'static str, reason: &'static str, message: String) -> Self {
        Self {
            kind: "Progressing",
            status,
            reason,
            message,
        }
    }
}

/// Returns the stored condition of a type.
pub(super) fn find<'a>(view: &'a View, kind: &str) -> Option<&'a Value> {
    list_at(&view.value, "/status/conditions").find(|it| text(it, "type") == kind)
}

/// Returns a condition to write, unless the stored one has its status and reason.
///
/// Upstream: `SetDeploymentCondition`
pub(super) fn set(view: &View, condition: &Condition) -> Option<Value> {
    let found = find(view, condition.kind);
    let is_same = |it: &Value| text(it, "status") == condition.status;
    if found.is_some_and(|it| is_same(it) && text(it, "reason") == condition.reason) {
        return None;
    }
    Some(renewed(view, condition))
}

/// Returns the condition with the current update time.
pub(super) fn renewed(view: &View, condition: &Condition) -> Value {
    let now = time::format_seconds(view.now);
    let same = find(view, condition.kind).filter(|it| text(it, "status") == condition.status);
    let since = same.map(|it| text(it, "lastTransitionTime"));
    json!({
        "type": condition.kind,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastUpdateTime": now,
        "lastTransitionTime": since.unwrap_or(&now),
    })
}

/// Returns the seconds that a rollout may take without progress.
pub(super) fn deadline(view: &View) -> Option<i64> {
    let deadline = view
        .value
        .pointer("/spec/progressDeadlineSeconds")?
        .as_i64()?;
    (deadline != NO_DEADLINE).then_some(deadline)
}

pub(super) fn has_deadline(view: &View) -> bool {
    deadline(view).is_some()
}

/// Returns the time until the progress deadline; zero once it has passed. `None` without a running
/// rollout or a deadline, or once the status reports the timeout.
///
/// Upstream: `DeploymentTimedOut`, `requeueStuckDeployment`
fn time_left(view: &View) -> Option<SignedDuration> {
    let progressing = find(view, "Progressing")?;
    if matches!(text(progressing, "reason"), AVAILABLE | TIMED_OUT) {
        return None;
    }
    let since = time::parse(text(progressing, "lastUpdateTime")).ok()?;
    let end = since
        .checked_add(SignedDuration::from_secs(deadline(view)?))
        .ok()?;
    Some(end.duration_since(view.now).max(SignedDuration::ZERO))
}

/// Returns the time until the progress deadline, like `time_left`; `None` while the deployment is
/// paused.
pub(super) fn time_to_deadline(view: &View) -> Option<Duration> {
    let left = time_left(view)?;
    (!view.is_paused).then(|| left.unsigned_abs())
}

/// Reports whether the rollout has exceeded its progress deadline.
pub(super) fn is_late(view: &View) -> bool {
    let is_known = find(view, "Progressing").is_some_and(|it| text(it, "reason") == TIMED_OUT);
    is_known || time_left(view).is_some_and(|left| left.is_zero())
}
