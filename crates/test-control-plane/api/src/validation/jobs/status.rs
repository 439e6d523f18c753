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
    use crate::settings::ServerGates;
    use crate::status::FieldError;
    use crate::validation::engine::Context;
    use crate::validation::tables;

    /// Returns the details of the errors of a changed status. A text of conditions such as
    /// `Complete Failed` stands for true ones.
    fn errors(spec: &Value, old: (&str, Value), new: (&str, Value)) -> Vec<String> {
        let job = |(conditions, mut status): (&str, Value)| {
            let conditions = conditions.split_whitespace();
            let conditions = conditions.map(|of| json!({"type": of, "status": "True"}));
            status["conditions"] = conditions.collect();
            json!({"spec": spec, "status": status})
        };
        let (old, new) = (job(old), job(new));
        let context = Context {
            old: Some(&old),
            ..tables::context(ServerGates::default())
        };
        let mut errors = Errors::new();
        Place::root(&context, &new, Some(&old), "").check("Job/status", &mut errors);
        let detail = |error: FieldError| {
            let (_, detail) = error.message.rsplit_once(": ").unwrap_or_default();
            detail.to_owned()
        };
        errors.into_iter().map(detail).collect()
    }

    #[test]
    fn conditions_need_and_exclude_others() {
        let time = "2026-01-01T00:00:00Z";
        let done = json!({"startTime": time, "completionTime": time});
        let started = json!({"startTime": time});
        for (old, new, status, expected) in [
            ("", "SuccessCriteriaMet Complete", &done, &[][..]),
            (
                "",
                "Complete",
                &done,
                &[
                    "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
                ],
            ),
            (
                "",
                "Failed",
                &started,
                &["cannot set Failed=True condition without the FailureTarget=true condition"],
            ),
            (
                "SuccessCriteriaMet",
                "SuccessCriteriaMet FailureTarget",
                &started,
                &["cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"],
            ),
            (
                "FailureTarget Failed",
                "FailureTarget",
                &started,
                &["cannot disable the terminal Failed=True condition"],
            ),
            (
                "SuccessCriteriaMet",
                "",
                &started,
                &["cannot disable the SuccessCriteriaMet=True condition"],
            ),
            // What a write leaves alone may be wrong.
            ("Complete", "Complete", &done, &[]),
        ] {
            let found = errors(&json!({}), (old, status.clone()), (new, status.clone()));
            assert_eq!(found, expected, "{old} -> {new}");
        }
    }

    #[test]
    fn fields_agree_with_conditions_and_with_each_other() {
        let time = |hour: u8| format!("2026-01-01T0{hour}:00:00Z");
        let failed = "FailureTarget Failed";
        for (conditions, old, new, expected) in [
            (
                "",
                json!({}),
                json!({"startTime": time(0), "completionTime": time(1)}),
                "cannot set completionTime when there is no Complete=True condition",
            ),
            (
                failed,
                json!({"startTime": time(0)}),
                json!({"startTime": time(0), "active": 1}),
                "active>0 is invalid for finished job",
            ),
            (
                failed,
                json!({"startTime": time(0)}),
                json!({"startTime": time(0), "terminating": 1}),
                "terminating>0 is invalid for finished job",
            ),
            (
                failed,
                json!({"startTime": time(0)}),
                json!({"startTime": time(0), "uncountedTerminatedPods": {"failed": ["u"]}}),
                "must be empty for finished job",
            ),
            (
                "",
                json!({}),
                json!({"completedIndexes": "0"}),
                "cannot set non-empty completedIndexes when non-indexed completion mode",
            ),
            (
                "",
                json!({}),
                json!({"failedIndexes": ""}),
                "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
            ),
            (
                "",
                json!({}),
                json!({"ready": 2, "active": 1}),
                "cannot set more ready pods than active",
            ),
            (
                "",
                json!({"failed": 2}),
                json!({"failed": 1}),
                "cannot decrease the failed counter",
            ),
            (
                "",
                json!({"startTime": time(0)}),
                json!({"startTime": time(1)}),
                "field is immutable for unsuspended job once set",
            ),
        ] {
            let found = errors(&json!({}), (conditions, old), (conditions, new.clone()));
            assert_eq!(found, [expected], "{new}");
        }
        let indexed = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2});
        let found = |new: Value| errors(&indexed, ("", json!({"succeeded": 2})), ("", new));
        assert_eq!(found(json!({"succeeded": 1})), [""; 0]);
        let wrong = found(json!({"succeeded": 2, "completedIndexes": "0,x"}));
        let why = "cannot convert string to integer for index: \"x\"";
        assert_eq!(wrong, [why.rsplit(": ").next().unwrap()]);
    }

    #[test]
    fn lists_of_indexes_may_overlap() {
        assert_eq!(overlap("0-2,5", "3-4", 10), None);
        assert_eq!(overlap("0-2,5", "4-6", 10), Some(5));
        assert_eq!(overlap("", "1", 10), None);
    }
}
