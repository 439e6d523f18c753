//! Rules of jobs and cron jobs.

use std::collections::BTreeSet;

use serde_json::json;

use super::place::{Errors, Place};
use super::{metadata, pod_template};
use crate::status::FieldError;

/// Maximum length of a cron job's name, in bytes. Its jobs' names are 11 longer.
const CRON_JOB_NAME_MAX: usize = 52;

/// The names that stand for a schedule.
const SCHEDULE_NAMES: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// The fields of a schedule: the first and last value of each, and the names of values.
const SCHEDULE_FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Validates the pod template of a job.
///
/// Upstream: `validateJobSpec`, the part about the template.
pub(super) fn job_template(spec: &Place<'_>, errors: &mut Errors) {
    let template = spec.member("template");
    let annotations = template.member_as("metadata.annotations", "annotations");
    metadata::labels(&template.member_as("metadata.labels", "labels"), errors);
    metadata::annotations(&annotations, errors);
    let pod_spec = template.member("spec");
    pod_template::validate_spec(&pod_spec, &BTreeSet::new(), errors);
    let restart = pod_spec.member("restartPolicy");
    match restart.text() {
        "OnFailure" | "Never" => {}
        "Always" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            errors.push(restart.required(detail));
        }
        _ => errors.push(restart.not_supported(&["OnFailure", "Never"])),
    }
}

/// Rejects changes of a job's immutable members.
///
/// Upstream: `ValidateJobSpecUpdate`.
pub(super) fn job_update(spec: &Place<'_>, errors: &mut Errors) {
    let Some(old) = spec.old else { return };
    let is_suspended = old.get("suspend") == Some(&json!(true));
    let is_indexed = spec.text_of("completionMode") == "Indexed";
    for (member, may_change) in [
        ("completions", is_indexed),
        ("selector", false),
        ("template", is_suspended),
        ("completionMode", false),
        ("podFailurePolicy", false),
        ("backoffLimitPerIndex", false),
        ("managedBy", false),
        ("successPolicy", false),
    ] {
        let place = spec.member(member);
        if place.is_changed() && !may_change {
            errors.push(place.invalid("field is immutable"));
        }
    }
}

pub(super) fn cron_job_name(job: &Place<'_>, errors: &mut Errors) {
    let name = job.member("metadata.name");
    if name.text().len() > CRON_JOB_NAME_MAX {
        errors.push(name.invalid("must be no more than 52 characters"));
    }
}

/// Rejects a text that is no schedule.
pub(super) fn schedule(schedule: &Place<'_>, errors: &mut Errors) {
    let text = schedule.text();
    let is_every = text.strip_prefix("@every ");
    if let Some(duration) = is_every {
        if kube_apimachinery::go_duration::parse(duration).is_none() {
            let detail = format!("failed to parse duration {text}");
            errors.push(schedule.invalid(&detail));
        }
        return;
    }
    if text.starts_with('@') {
        if !SCHEDULE_NAMES.contains(&text) {
            let detail = format!("unrecognized descriptor: {text}");
            errors.push(schedule.invalid(&detail));
        }
        return;
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != SCHEDULE_FIELDS.len() {
        let detail = format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        );
        errors.push(schedule.invalid(&detail));
        return;
    }
    let mut parts = fields.iter().zip(SCHEDULE_FIELDS);
    let wrong = parts.find_map(|(field, range)| {
        let mut parts = field.split(',');
        parts.find(|part| !is_in_range(part, range))
    });
    if let Some(part) = wrong {
        let detail = format!("failed to parse {part}");
        errors.push(FieldError::invalid(schedule.path(), &json!(text), &detail));
    }
}

/// Reports whether the text is a value, a range or a step of values of a field.
fn is_in_range(text: &str, (first, last, names): (u32, u32, &[&str])) -> bool {
    let (range, step) = text.split_once('/').unwrap_or((text, "1"));
    if step.parse::<u32>().map_or(true, |step| step == 0) {
        return false;
    }
    if matches!(range, "*" | "?") {
        return true;
    }
    let value = |text: &str| {
        let text = text.to_lowercase();
        let named = names.iter().position(|name| *name == text);
        let named = named.and_then(|i| u32::try_from(i).ok());
        let value = named
            .map(|i| i + first)
            .or_else(|| text.parse::<u32>().ok());
        value.filter(|value| (first..=last).contains(value))
    };
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    value(from)
        .zip(value(to))
        .is_some_and(|(from, to)| from <= to)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn schedules_are_checked_by_field() {
        let check = |text: &str| {
            let value = json!(text);
            let mut errors = Errors::new();
            schedule(&Place::new(&value, "spec.schedule"), &mut errors);
            errors.pop().map(|error| error.message)
        };
        for text in [
            "*/5 * * * *",
            "0 0 1 jan SUN",
            "1,2,3-9/2 0-23 ? * *",
            "@hourly",
            "@every 1h30m",
        ] {
            assert_eq!(check(text), None, "{text}");
        }
        for (text, detail) in [
            ("a b", "expected exactly 5 fields, found 2: [a b]"),
            ("60 * * * *", "failed to parse 60"),
            ("* * 0 * *", "failed to parse 0"),
            ("*/0 * * * *", "failed to parse */0"),
            ("5-1 * * * *", "failed to parse 5-1"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            let message = format!("Invalid value: {text:?}: {detail}");
            assert_eq!(check(text), Some(message), "{text}");
        }
    }

    fn updated(old: &Value, new: &Value) -> Vec<String> {
        let place = Place::root(new, Some(old), crate::settings::FeatureGates::default());
        let mut errors = Errors::new();
        job_update(&place, &mut errors);
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn template_changes_only_while_suspended() {
        let old = json!({"template": {"a": 1}, "completions": 1, "suspend": true});
        let new = json!({"template": {"a": 2}, "completions": 2});
        assert_eq!(updated(&old, &new), ["completions"]);
        let running = json!({"template": {"a": 1}, "completions": 2});
        assert_eq!(updated(&running, &new), ["template"]);
    }
}
