//! Rules of the status of jobs.

use serde_json::{Value, json};

use super::intervals::intervals;
use crate::members::{at, list_at, number_at, text};
use crate::validation::engine::{Errors, Guard, Place};

/// Guards of the status. The names of conditions begin with a capital, and `finished` is the condition
/// of a job that is complete or has failed; other names are fields of the status.
///
/// | guard | effect |
/// |---|---|
/// | `turns A B` | excuses writes that change none of these conditions and fields |
/// | `is A B`, `isnt A` | excuses jobs without these conditions, or with one of them |
/// | `was A`, `wasnt A` | the same for the stored job |
/// | `not-resumed` | excuses jobs that are suspended no longer |
pub(in crate::validation) const GUARDS: &[(&str, Guard)] = &[
    ("is", |job, _, names| {
        names.iter().all(|it| is_true(job.value, it))
    }),
    ("isnt", |job, _, names| {
        !names.iter().any(|it| is_true(job.value, it))
    }),
    ("not-resumed", |job, _, _| {
        let mut conditions = list_at(job.value, "/status/conditions");
        let is_resumed =
            conditions.any(|it| text(it, "type") == "Suspended" && text(it, "status") == "False");
        !is_resumed || !is_true(stored(job), "Suspended")
    }),
    ("turns", |job, _, names| {
        names.iter().any(|it| turns(job, it))
    }),
    ("was", |job, _, names| {
        names.iter().all(|it| is_true(stored(job), it))
    }),
    ("wasnt", |job, _, names| {
        !names.iter().any(|it| is_true(stored(job), it))
    }),
];

fn stored<'a>(job: &Place<'a>) -> &'a Value {
    job.old.unwrap_or(&Value::Null)
}

/// Returns true if a job has this condition.
fn is_true(job: &Value, condition: &str) -> bool {
    if condition == "finished" {
        return is_true(job, "Complete") || is_true(job, "Failed");
    }
    let mut conditions = list_at(job, "/status/conditions");
    conditions.any(|it| text(it, "type") == condition && text(it, "status") == "True")
}

/// Returns true if a write changes a condition or a field of the status.
fn turns(job: &Place<'_>, name: &str) -> bool {
    if name == "finished" || name.starts_with(|c: char| c.is_ascii_uppercase()) {
        return is_true(stored(job), name) != is_true(job.value, name);
    }
    // An empty text of failed indexes differs from none.
    let is_zero = |value: &&Value| **value == 0 || name != "failedIndexes" && **value == "";
    let of = |job| at(job, &format!("/status/{name}")).filter(|value| !is_zero(value));
    of(stored(job)) != of(job.value)
}

/// Returns true if the template of a job may change: it is suspended and has no pods.
///
/// Upstream: `shouldAllowMutablePodTemplate`.
pub(super) fn is_mutable(job: &Value) -> bool {
    let is_suspended = job.pointer("/spec/suspend") == Some(&json!(true));
    let start = job.pointer("/status/startTime");
    let has_stopped = start.is_none_or(Value::is_null) || is_true(job, "Suspended");
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

/// Rejects an end before the start.
pub(in crate::validation) fn ended(end: &Place<'_>, errors: &mut Errors) {
    let parsed = |time: &Place<'_>| time.text().parse::<jiff::Timestamp>().ok();
    let start = parsed(&end.member("^status.startTime"));
    if parsed(end).is_some_and(|end| start.is_some_and(|start| end < start)) {
        errors.push(end.invalid("must be equal to or after `startTime`"));
    }
}

fn completions(of: &Place<'_>) -> i64 {
    of.member("^spec.completions").number()
}

/// Rejects a text that doesn't list indexes.
pub(in crate::validation) fn job_indexes(indexes: &Place<'_>, errors: &mut Errors) {
    let path = indexes.path();
    let name = path.rsplit('.').next().unwrap_or_default();
    let wrong = intervals(indexes.text(), completions(indexes)).err();
    indexes.invalid_for(
        wrong.map(|why| format!("error parsing {name}: {why}")),
        errors,
    );
}

/// Rejects failed indexes that are complete as well.
pub(in crate::validation) fn failed_only(failed: &Place<'_>, errors: &mut Errors) {
    let completed = failed.member("^status.completedIndexes");
    let found = overlap(completed.text(), failed.text(), completions(failed));
    let detail = |index| format!("failedIndexes and completedIndexes overlap at index: {index}");
    failed.invalid_for(found.map(detail), errors);
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
