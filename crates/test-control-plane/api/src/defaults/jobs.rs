//! The defaults of jobs, and the selector of their pods.

use serde_json::{Map, Value, json};

use crate::members::{at, object_mut};

/// The labels of a job's pods that hold its name.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// The labels of a job's pods that hold its uid. The last one is selected.
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/// Upstream: `SetDefaults_Job`.
pub(super) fn set_defaults(job: &mut Value) {
    if !is_labelled(job) {
        label_like_pods(job);
    }
    if job.pointer("/spec").is_some_and(|spec| !spec.is_object()) {
        return;
    }
    let spec = object_mut(job, "spec");
    let is_absent = |spec: &Map<String, Value>, member| spec.get(member).is_none_or(Value::is_null);
    if is_absent(spec, "completions") && is_absent(spec, "parallelism") {
        spec.insert("completions".to_owned(), json!(1));
    }
    let has_policy = !is_absent(spec, "podFailurePolicy");
    let (limit, replacement) = (
        if is_absent(spec, "backoffLimitPerIndex") {
            6
        } else {
            i32::MAX
        },
        if has_policy {
            "Failed"
        } else {
            "TerminatingOrFailed"
        },
    );
    for (member, default) in [
        ("parallelism", json!(1)),
        ("backoffLimit", json!(limit)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("manualSelector", json!(false)),
        ("podReplacementPolicy", json!(replacement)),
    ] {
        if is_absent(spec, member) {
            spec.insert(member.to_owned(), default);
        }
    }
}

/// Returns true if a job has labels.
pub fn is_labelled(job: &Value) -> bool {
    let labels = at(job, "/metadata/labels").filter(|labels| !labels.is_null());
    labels.is_some_and(|labels| labels.as_object().is_none_or(|labels| !labels.is_empty()))
}

/// Sets the labels of a job to those of its pods.
pub fn label_like_pods(job: &mut Value) {
    let labels = job.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(is_filled)
        && job.pointer("/metadata").is_none_or(Value::is_object)
    {
        object_mut(job, "metadata").insert("labels".to_owned(), labels);
    }
}

/// Selects the pods of a new job by its uid, unless its user selects them.
///
/// A job whose labels are those of its pods gets these labels too: `has_pod_labels` is true for one
/// that was sent without labels.
///
/// Upstream: `generateSelector`
pub fn select_own_pods(job: &mut Value, has_pod_labels: bool) {
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let of = |member: &str| job.pointer(&format!("/metadata/{member}")).cloned();
    let (name, uid) = (of("name"), of("uid"));
    let [.., selected] = UID_LABELS;
    let names = NAME_LABELS.map(|label| (label, name.clone()));
    let uids = UID_LABELS.map(|label| (label, uid.clone()));
    for (label, value) in names.into_iter().chain(uids) {
        insert(job, "/spec/template/metadata/labels", label, value);
    }
    insert(job, "/spec/selector/matchLabels", selected, uid);
    if has_pod_labels {
        label_like_pods(job);
    }
}

/// Inserts a field that is missing into an object at a path of objects. Leaves other values alone.
fn insert(value: &mut Value, pointer: &str, member: &str, inserted: Option<Value>) {
    let mut at = value;
    for step in pointer.split('/').skip(1) {
        let Some(members) = at.as_object_mut() else {
            return;
        };
        at = members.entry(step).or_insert(Value::Null);
        if at.is_null() {
            *at = json!({});
        }
    }
    if let Some(members) = at.as_object_mut() {
        let inserted = inserted.unwrap_or_default();
        members.entry(member).or_insert(inserted);
    }
}

/// Returns true for labels that can be decoded.
fn is_filled(value: &Value) -> bool {
    let labels = value.as_object().filter(|labels| !labels.is_empty());
    labels.is_some_and(|labels| labels.values().all(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_runs_one_pod_by_default() {
        let mut job = json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}});
        set_defaults(&mut job);
        assert_eq!(job["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(job["spec"]["completions"], 1);
        assert_eq!(job["spec"]["parallelism"], 1);
        assert_eq!(job["spec"]["backoffLimit"], 6);
        let mut queue = json!({"spec": {"parallelism": 3, "backoffLimitPerIndex": 1}});
        set_defaults(&mut queue);
        assert_eq!(queue["spec"].get("completions"), None);
        assert_eq!(queue["spec"]["backoffLimit"], i32::MAX);
        for odd in [json!({"spec": 5}), json!({"metadata": 1, "spec": 2})] {
            let mut job = odd.clone();
            set_defaults(&mut job);
            assert_eq!(job, odd);
        }
    }

    #[test]
    fn job_selects_pods_by_its_uid() {
        let labels = json!({"job-name": "mine"});
        let mut job = json!({
            "metadata": {"name": "a", "uid": "u"},
            "spec": {"template": {"metadata": {"labels": labels}}},
        });
        select_own_pods(&mut job, true);
        assert_eq!(
            job["metadata"]["labels"],
            job["spec"]["template"]["metadata"]["labels"]
        );
        let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}});
        assert_eq!(job["spec"]["selector"], selector);
        assert_eq!(
            job["spec"]["template"]["metadata"]["labels"],
            json!({
                "batch.kubernetes.io/controller-uid": "u",
                "batch.kubernetes.io/job-name": "a",
                "controller-uid": "u",
                "job-name": "mine",
            })
        );
        let mut manual = json!({"metadata": {}, "spec": {"manualSelector": true}});
        select_own_pods(&mut manual, true);
        assert_eq!(manual["spec"], json!({"manualSelector": true}));
    }
}
