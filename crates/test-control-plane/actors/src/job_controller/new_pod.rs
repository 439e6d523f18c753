//! New pods of a job.

use std::collections::BTreeSet;

use kube_test_control_plane_api::members::object_mut;
use kube_test_control_plane_api::object::Object;
use serde_json::{Value, json};

use super::pods::{INDEX, TRACKING};
use super::view::View;
use crate::dependents::{pod_of, reference};

/// The variable with a pod's index.
const VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// Returns this number of new pods.
pub(super) fn several(job: &Object, view: &View, count: usize) -> Vec<Value> {
    let pod = one(job, view);
    if !view.is_indexed {
        return vec![pod; count];
    }
    let taken = view.pods.iter().filter(|pod| pod.is_active());
    let taken: BTreeSet<u32> = taken.filter_map(|pod| pod.index).collect();
    let done = view.succeeded_indexes();
    let free = (0..view.completions_count()).filter(|it| !taken.contains(it) && !done.contains(it));
    let name = &job.key.name;
    free.take(count)
        .map(|index| indexed(pod.clone(), name, index))
        .collect()
}

fn one(job: &Object, view: &View) -> Value {
    let null = Value::Null;
    let template = view.job.pointer("/spec/template").unwrap_or(&null);
    let owner = reference("batch/v1", "Job", job);
    let mut pod = pod_of(template, &job.key.name, &owner);
    let finalizers = object_mut(&mut pod, "metadata").entry("finalizers");
    let finalizers = finalizers.or_insert(json!([]));
    match finalizers.as_array_mut() {
        Some(finalizers) => finalizers.push(json!(TRACKING)),
        None => *finalizers = json!([TRACKING]),
    }
    pod
}

/// Gives a pod its index.
///
/// Upstream: `addCompletionIndexAnnotation`, `addCompletionIndexLabel`, `addCompletionIndexEnvVariables`
fn indexed(mut pod: Value, job: &str, index: u32) -> Value {
    let host = format!("{job}-{index}");
    for member in ["annotations", "labels"] {
        let members = object_mut(object_of(&mut pod, "metadata"), member);
        members.insert(INDEX.to_owned(), json!(index.to_string()));
    }
    pod["metadata"]["generateName"] = json!(format!("{host}-"));
    let path = format!("metadata.labels['{INDEX}']");
    let variable = json!({"name": VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let spec = object_of(&mut pod, "spec");
    if spec
        .get("hostname")
        .is_none_or(|it| it.is_null() || it == "")
    {
        spec["hostname"] = json!(host);
    }
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            let variables = container.entry("env").or_insert(json!([]));
            if let Some(variables) = variables.as_array_mut() {
                variables.push(variable.clone());
            }
        }
    }
    pod
}

fn object_of<'a>(value: &'a mut Value, member: &str) -> &'a mut Value {
    object_mut(value, member);
    &mut value[member]
}
