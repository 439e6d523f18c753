//! Rules of the status of jobs.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::intervals::intervals;
use crate::members::{list_at, number_at, text, text_at};
use crate::status::FieldError;
use crate::validation::engine::{Errors, Place};

/// Returns true if a job has this condition.
fn is_true(job: &Value, condition: &str) -> bool {
    let mut conditions = list_at(job, "/status/conditions");
    conditions.any(|it| text(it, "type") == condition && text(it, "status") == "True")
}

fn is_finished(job: &Value) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

/// Returns true if the template of a job may change: it is suspended and has no pods.
///
/// Upstream: `shouldAllowMutablePodTemplate`.
pub(super) fn is_mutable(job: &Value) -> bool {
    let is_suspended = job.pointer("/spec/suspend") == Some(&json!(true));
    let is_started = job
        .pointer("/status/startTime")
        .is_some_and(|time| !time.is_null());
    let has_stopped = !is_started || is_true(job, "Suspended");
    is_suspended && has_stopped && number_at(job, "/status/active") == 0
}

/// Rejects an empty or repeated identifier of a pod.
pub(in crate::validation) fn uncounted(pods: &Place<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for list in ["succeeded", "failed"].map(|member| pods.member(member)) {
        for pod in list.elements() {
            let uid = pod.value.as_str().unwrap_or_default();
            if uid.is_empty() {
                pod.invalid_for(["must not be empty"], errors);
            } else if seen.iter().any(|seen| seen == uid) {
                errors.push(pod.duplicate());
            } else {
                seen.push(uid.to_owned());
            }
        }
    }
}

/// A write of a job's status.
struct Change<'a> {
    job: &'a Place<'a>,
    old: &'a Value,
}

impl Change<'_> {
    /// Returns true if the write changes a condition.
    fn turns(&self, condition: &str) -> bool {
        is_true(self.old, condition) != is_true(self.job.value, condition)
    }

    /// Returns true if the write changes a field of the status.
    fn changes(&self, member: &str) -> bool {
        let of = |job: &Value| job.pointer(&format!("/status/{member}")).cloned();
        // An empty text of failed indexes differs from none.
        let is_zero =
            |value: &Value| *value == json!(0) || member != "failedIndexes" && *value == "";
        let same = |value: Option<Value>| value.filter(|value| !is_zero(value));
        same(of(self.old)) != same(of(self.job.value))
    }

    fn has(&self, condition: &str) -> bool {
        is_true(self.job.value, condition)
    }

    fn is_indexed(&self) -> bool {
        text_at(self.job.value, "/spec/completionMode") == "Indexed"
    }
}

/// Upstream: `validateJobStatus`, `ValidateJobStatusUpdate`, `getStatusValidationOptions`.
pub(in crate::validation) fn job_status(job: &Place<'_>, errors: &mut Errors) {
    let Some(old) = job.old else { return };
    let change = Change { job, old };
    conditions(&change, errors);
    times(&change, errors);
    targets(&change, errors);
    finished(&change, errors);
    indexes(&change, errors);
    success(&change, errors);
    kept(&change, errors);
}

/// Rejects conditions, each with a reason, if the first value is true.
fn refuse_conditions(change: &Change<'_>, cases: &[(bool, &str)], errors: &mut Errors) {
    let conditions = change.job.member("status.conditions");
    for (_, detail) in cases.iter().filter(|(is_wrong, _)| *is_wrong) {
        errors.push(FieldError::invalid_object(conditions.path(), detail));
    }
}

fn conditions(change: &Change<'_>, errors: &mut Errors) {
    let is_complete = change.has("Complete");
    let turns = |other: &str| change.turns("Complete") || change.turns(other);
    let cases = [
        (
            turns("Failed") && is_complete && change.has("Failed"),
            "cannot set Complete=True and Failed=true conditions",
        ),
        (
            turns("FailureTarget") && is_complete && change.has("FailureTarget"),
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
    ];
    refuse_conditions(change, &cases, errors);
}

fn times(change: &Change<'_>, errors: &mut Errors) {
    let status = change.job.member("status");
    let [start, end] = ["startTime", "completionTime"].map(|member| status.member(member));
    let is_complete = change.has("Complete");
    if change.turns("Complete") || change.changes("completionTime") {
        if end.is_present() && !is_complete {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            errors.push(end.invalid(detail));
        }
        if !end.is_present() && is_complete {
            errors.push(end.required("completionTime is required for Complete jobs"));
        }
    }
    let parsed = |time: &Place<'_>| time.text().parse::<Timestamp>().ok();
    if (change.changes("startTime") || change.changes("completionTime"))
        && parsed(&start)
            .zip(parsed(&end))
            .is_some_and(|(start, end)| end < start)
    {
        errors.push(end.invalid("must be equal to or after `startTime`"));
    }
}

fn targets(change: &Change<'_>, errors: &mut Errors) {
    let (is_failed, is_complete) = (change.has("Failed"), change.has("Complete"));
    let is_failure = change.turns("Failed") || change.changes("failedIndexes");
    let is_success = change.turns("Complete") || change.turns("SuccessCriteriaMet");
    let cases = [
        (
            is_failure && is_failed && !change.has("FailureTarget"),
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            is_success && is_complete && !change.has("SuccessCriteriaMet"),
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
    ];
    refuse_conditions(change, &cases, errors);
}

fn finished(change: &Change<'_>, errors: &mut Errors) {
    let status = change.job.member("status");
    let turns = is_finished(change.old) != is_finished(change.job.value);
    if !is_finished(change.job.value) {
        return;
    }
    let active = status.member("active");
    if (turns || change.changes("active")) && active.number() > 0 {
        errors.push(active.invalid("active>0 is invalid for finished job"));
    }
    let start = status.member("startTime");
    let never_ran = change.job.member("spec.suspend").value == true
        && change.job.member("spec.completions").value == 0;
    if (turns || change.changes("startTime")) && !never_ran && !start.is_present() {
        errors.push(start.required("startTime is required for finished job"));
    }
    let uncounted = status.member("uncountedTerminatedPods");
    let is_counted = ["failed", "succeeded"]
        .iter()
        .all(|it| uncounted.member(it).is_empty());
    if (turns || change.changes("uncountedTerminatedPods")) && !is_counted {
        errors.push(uncounted.invalid("must be empty for finished job"));
    }
}

fn indexes(change: &Change<'_>, errors: &mut Errors) {
    let job = change.job;
    let status = job.member("status");
    let [completed, failed] = ["completedIndexes", "failedIndexes"].map(|it| status.member(it));
    let completions = job.member("spec.completions");
    let has_limit = job.member("spec.backoffLimitPerIndex").is_present();
    let [changes_completed, changes_failed] =
        ["completedIndexes", "failedIndexes"].map(|member| change.changes(member));
    let max = completions.number();
    for (list, is_checked) in [
        (&completed, changes_completed),
        (&failed, changes_failed && has_limit),
    ] {
        if is_checked
            && completions.is_present()
            && let Err(why) = intervals(list.text(), max)
        {
            let name = list.path();
            let name = name.rsplit('.').next().unwrap_or_default().to_owned();
            list.invalid_for([format!("error parsing {name}: {why}")], errors);
        }
    }
    if changes_completed && !completed.is_empty() && !change.is_indexed() {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        completed.invalid_for([detail], errors);
    }
    if changes_failed && !has_limit && failed.is_present() {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        failed.invalid_for([detail], errors);
    }
    if (changes_completed || changes_failed) && completions.is_present() {
        let found = overlap(completed.text(), failed.text(), max);
        let detail =
            |index| format!("failedIndexes and completedIndexes overlap at index: {index}");
        failed.invalid_for(found.map(detail), errors);
    }
    let turns = is_finished(change.old) != is_finished(job.value);
    let terminating = status.member("terminating");
    let is_checked = turns || change.changes("terminating");
    if is_checked && terminating.number() > 0 && is_finished(job.value) {
        errors.push(terminating.invalid("terminating>0 is invalid for finished job"));
    }
    let [ready, active] = ["ready", "active"].map(|member| status.member(member));
    let is_checked = change.changes("ready") || change.changes("active");
    if is_checked && ready.number() > active.number() {
        errors.push(ready.invalid("cannot set more ready pods than active"));
    }
}

/// Returns the first index in both lists.
fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let of = |text: &str| -> Vec<(i64, i64)> {
        let parts = text
            .split(',')
            .filter_map(|part| intervals(part, completions).ok());
        parts.flatten().collect()
    };
    let (completed, failed) = (of(completed), of(failed));
    let mut pairs = completed
        .iter()
        .flat_map(|a| failed.iter().map(move |b| (a, b)));
    let common = pairs.find(|(a, b)| a.0 <= b.1 && b.0 <= a.1);
    common.map(|(a, b)| a.0.max(b.0))
}

fn success(change: &Change<'_>, errors: &mut Errors) {
    let is_met = change.has("SuccessCriteriaMet");
    let has_policy = change.job.member("spec.successPolicy").is_present();
    let cases = [
        (
            is_met && change.has("Failed"),
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        ),
        (
            is_met && change.has("FailureTarget"),
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
        (
            has_policy && !is_met && change.has("Complete"),
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        ),
    ];
    refuse_conditions(change, &cases, errors);
}

fn kept(change: &Change<'_>, errors: &mut Errors) {
    let status = change.job.member("status");
    for condition in ["Failed", "Complete", "FailureTarget"] {
        let is_lost = is_true(change.old, condition) && !change.has(condition);
        let detail = format!("cannot disable the terminal {condition}=True condition");
        refuse_conditions(change, &[(is_lost, &detail)], errors);
    }
    let spec = change.job.member("spec");
    let may_shrink =
        change.is_indexed() && spec.member("completions").value == spec.member("parallelism").value;
    for (member, may_shrink) in [("failed", false), ("succeeded", may_shrink)] {
        let count = status.member(member);
        let before = count.old.and_then(Value::as_i64).unwrap_or_default();
        if count.number() < before && !may_shrink {
            let number = json!(count.number());
            let detail = format!("cannot decrease the {member} counter");
            errors.push(FieldError::invalid(count.path(), &number, &detail));
        }
    }
    let [end, start] = ["completionTime", "startTime"].map(|member| status.member(member));
    let had = |time: &Place<'_>| time.old.is_some_and(|old| !old.is_null());
    if end.is_present() && had(&end) && end.is_changed() {
        errors.push(end.invalid("field is immutable"));
    }
    let conditions = list_at(change.job.value, "/status/conditions");
    let mut resumed = conditions.filter(|it| text(it, "status") == "False");
    let resumes =
        is_true(change.old, "Suspended") && resumed.any(|it| text(it, "type") == "Suspended");
    let is_suspended = spec.member("suspend").value == true;
    if had(&start) && start.is_changed() && !is_suspended && !resumes {
        errors.push(start.invalid("field is immutable for unsuspended job once set"));
    }
    let was_met = is_true(change.old, "SuccessCriteriaMet");
    let is_met = change.has("SuccessCriteriaMet");
    let cases = [
        (
            was_met && !is_met,
            "cannot disable the SuccessCriteriaMet=True condition",
        ),
        (
            is_true(change.old, "Complete") && !was_met && is_met,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        ),
    ];
    refuse_conditions(change, &cases, errors);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_indexes_may_overlap() {
        assert_eq!(overlap("0-2,5", "3-4", 10), None);
        assert_eq!(overlap("0-2,5", "4-6", 10), Some(5));
        assert_eq!(overlap("", "1", 10), None);
    }
}
