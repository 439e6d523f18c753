//! Rules of jobs and cron jobs.

mod intervals;
mod status;

use serde_json::{Map, Value};

use intervals::intervals;
pub(super) use status::{GUARDS, ended, failed_only, job_indexes, uncounted};

use super::engine::{Errors, Place};
use super::pods::update::keep_node_affinity;
use super::workloads::selector;
use crate::go::{cron, names};
use crate::members::{at, copy_field, list, number_at, text, text_at};
use crate::status::FieldError;

/// Maximum length of the indexes of a success rule, in bytes.
const INDEXES_MAX: usize = 64 * 1024;

/// Maximum length of a part of a time zone's name, in bytes.
const TIME_ZONE_PART_MAX: usize = 14;

/// The labels of a job's pods, with the field of the metadata that they hold.
const LABELS: [(&str, &str); 4] = [
    ("controller-uid", "uid"),
    ("job-name", "name"),
    ("batch.kubernetes.io/controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
];

/// Upstream: `validateGeneratedSelector`.
pub(super) fn generated_selector(job: &Place<'_>, errors: &mut Errors) {
    let found = job.member("spec.selector");
    if job.member("spec.manualSelector").value == true || !found.is_present() {
        return;
    }
    let labels = job.member("spec.template.metadata.labels");
    let old = |label: &str| labels.old.is_some_and(|old| old.get(label).is_none());
    // Jobs of older servers have no labels with a domain.
    let is_old = LABELS[2..].iter().any(|(label, _)| old(label));
    let expected = if is_old { &LABELS[..2] } else { &LABELS };
    let metadata = job.member("metadata");
    for (label, member) in expected {
        let value = metadata.text_of(member);
        let field = format!("{}[{label}]", labels.path());
        let detail = format!("must be '{value}'");
        match labels.value.get(*label) {
            None => errors.push(FieldError::required(field, &detail)),
            Some(found) if found != value => {
                errors.push(FieldError::invalid(field, labels.value, &detail));
            }
            Some(_) => {}
        }
    }
    let pairs = expected.iter().map(|(label, member)| {
        let value = Value::from(metadata.text_of(member));
        ((*label).to_owned(), value)
    });
    let pairs: Map<String, Value> = pairs.collect();
    if selector(found.value).is_some_and(|selector| !selector.matches(&pairs)) {
        errors.push(found.invalid("`selector` not auto-generated"));
    }
}

pub(super) fn indexed_pod_names(job: &Place<'_>, errors: &mut Errors) {
    let completions = number_at(job.value, "/spec/completions");
    if text_at(job.value, "/spec/completionMode") != "Indexed" || completions <= 0 {
        return;
    }
    let name = job.member("metadata.name");
    let last = format!("{}-{}", name.text(), completions - 1);
    if !names::dns_label(&last).is_empty() {
        let detail = format!("will not able to create pod with invalid DNS label: {last}");
        name.invalid_for([detail], errors);
    }
}

/// Rejects a name that no container of the template has.
pub(super) fn template_container(name: &Place<'_>, errors: &mut Errors) {
    // The holders are the requirement, the rule, the rules, the policy and the job's spec.
    let spec = (0..5).try_fold(*name, |place, _| place.up().copied());
    let pod = spec
        .and_then(|spec| at(spec.value, "/template/spec"))
        .unwrap_or(&Value::Null);
    let mut all = list(pod, "containers").chain(list(pod, "initContainers"));
    if !all.any(|container| text(container, "name") == name.text()) {
        let detail = "must be one of the container or initContainer names in the pod template";
        name.invalid_for([detail], errors);
    }
}

pub(super) fn exit_code(code: &Place<'_>, errors: &mut Errors) {
    let operator = code
        .up()
        .and_then(Place::up)
        .map_or("", |it| it.text_of("operator"));
    if operator == "In" && code.number() == 0 {
        errors.push(code.invalid("must not be 0 for the In operator"));
    }
    if code.before().contains(code.value) {
        errors.push(code.duplicate());
    }
}

pub(super) fn ordered(codes: &Place<'_>, errors: &mut Errors) {
    let numbers: Vec<i64> = codes.values().map(|code| code.number()).collect();
    if !numbers.is_sorted() {
        errors.push(codes.invalid("must be ordered"));
    }
}

/// Upstream: `validateSuccessPolicyRule`.
pub(super) fn success_rule(rule: &Place<'_>, errors: &mut Errors) {
    let [indexes, count] = ["succeededIndexes", "succeededCount"].map(|it| rule.member(it));
    if !indexes.is_present() && !count.is_present() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(rule.required(detail));
    }
    let spec = rule.up().and_then(Place::up).and_then(Place::up);
    let completions = spec.map_or(0, |spec| spec.member("completions").number());
    let mut total = 0;
    if indexes.is_present() {
        indexes.limited(INDEXES_MAX, errors);
        match intervals(indexes.text(), completions) {
            Ok(found) => total = found.iter().map(|(from, to)| to - from + 1).sum(),
            Err(why) => {
                indexes.invalid_for([format!("error parsing succeededIndexes: {why}")], errors);
            }
        }
    }
    if count.number() < 0 {
        errors.push(count.invalid("must be greater than or equal to 0"));
    }
    let limits = [
        (true, completions, "specified completions"),
        (
            indexes.is_present(),
            total,
            "indexes in the specified succeededIndexes field",
        ),
    ];
    for (_, max, noun) in limits
        .iter()
        .filter(|(is_limit, ..)| *is_limit && count.is_present())
    {
        if count.number() > *max {
            let detail = format!("must be less than or equal to {max} (the number of {noun})");
            errors.push(count.invalid(&detail));
        }
    }
}

/// Rejects changes of the template, besides those of a job that has not started.
///
/// Upstream: `validatePodTemplateUpdate`.
pub(super) fn template_update(template: &Place<'_>, errors: &mut Errors) {
    let Some((old, job)) = template.old.zip(template.context.old) else {
        return;
    };
    if !status::is_mutable(job) {
        if template.is_changed() {
            errors.push(template.invalid("field is immutable"));
        }
        return;
    }
    let pod = template.member("spec");
    let mut masked = old.get("spec").cloned().unwrap_or_default();
    for member in ["nodeSelector", "tolerations", "schedulingGates"] {
        copy_field(&mut masked, pod.value, member);
    }
    keep_node_affinity(&mut masked, pod.value);
    keep_resources(&mut masked, pod.value);
    if *pod.value != masked {
        errors.push(pod.invalid("field is immutable"));
    }
}

/// Takes the resources of containers of the same names from the new pod.
fn keep_resources(masked: &mut Value, new: &Value) {
    for member in ["containers", "initContainers"] {
        let new = list(new, member);
        let Some(old) = masked.get_mut(member).and_then(Value::as_array_mut) else {
            continue;
        };
        if old.len() != new.len() {
            continue;
        }
        for (old, new) in old.iter_mut().zip(new) {
            if old.get("name") == new.get("name") {
                copy_field(old, new, "resources");
            }
        }
    }
}

/// Upstream: `validateScheduleFormat`.
pub(super) fn schedule(schedule: &Place<'_>, errors: &mut Errors) {
    let text = schedule.text();
    schedule.invalid_for(cron::parse(text).err(), errors);
    let old = schedule.old.and_then(Value::as_str).unwrap_or_default();
    let has_zone = schedule
        .up()
        .is_some_and(|spec| spec.member("timeZone").is_present());
    let detail = match (text.contains("TZ"), old.contains("TZ")) {
        (true, true) if has_zone => "cannot use both timeZone field and TZ or CRON_TZ in schedule",
        (true, false) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        _ => return,
    };
    schedule.invalid_for([detail], errors);
}

/// Upstream: `validateTimeZone`.
pub(super) fn time_zone(zone: &Place<'_>, errors: &mut Errors) {
    if zone.old.is_some_and(|old| old == zone.value) {
        return;
    }
    let text = zone.text();
    let is_part = |part: &str| {
        let is_char = |b: u8| b.is_ascii_alphanumeric() || b"._-+".contains(&b);
        let is_short = (1..=TIME_ZONE_PART_MAX).contains(&part.len());
        is_short
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.bytes().all(is_char)
    };
    if text.is_empty() {
        zone.invalid_for(["timeZone must be nil or non-empty string"], errors);
        return;
    }
    if !text.split('/').all(is_part) {
        zone.invalid_for([format!("unknown time zone {text}")], errors);
        return;
    }
    if text.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in \
                      https://www.iana.org/time-zones";
        zone.invalid_for([detail], errors);
    }
    zone.invalid_for(cron::load_location(text).err(), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::tests::{details, updated};

    #[test]
    fn indexes_increase() {
        assert_eq!(intervals("0,2-3", 5), Ok(vec![(0, 0), (2, 3)]));
        assert_eq!(intervals("", 5), Ok(Vec::new()));
        for (text, why) in [
            ("5", "too large index: \"5\""),
            ("x", "cannot convert string to integer for index: \"x\""),
            ("2,1", "non-increasing order, previous: 2, current: 1"),
            ("3-2", "non-increasing order, previous: 3, current: 2"),
        ] {
            assert_eq!(intervals(text, 5), Err(why.to_owned()));
        }
        assert!(intervals("1-2-3", 5).is_err());
    }

    #[test]
    fn zones_are_explicit() {
        assert_eq!(details(time_zone, &json!("Europe/Berlin")), [""; 0]);
        for wrong in ["", "a b", "Local", "Nowhere/Land", "../x"] {
            assert_eq!(details(time_zone, &json!(wrong)).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn template_changes_only_while_suspended() {
        let spec = |cpu: &str, suspend: bool, completions: i64| {
            let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
            json!({
                "template": {"metadata": {}, "spec": {"containers": [container]}},
                "completions": completions,
                "suspend": suspend,
            })
        };
        let job = |spec: Value| json!({"spec": spec});
        let check = |job: &Place<'_>, errors: &mut Errors| job.check("Job/update", errors);
        let fields = |old: Value, new: Value| updated(check, &job(old), &job(new), "");
        assert_eq!(fields(spec("1", true, 1), spec("2", true, 1)), [""; 0]);
        assert_eq!(
            fields(spec("1", true, 1), spec("1", true, 2)),
            ["spec.completions"]
        );
        assert_eq!(
            fields(spec("1", false, 1), spec("2", false, 1)),
            ["spec.template"]
        );
    }
}
