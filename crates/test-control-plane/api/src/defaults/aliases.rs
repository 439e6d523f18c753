//! Fields of pods that other fields replaced, and annotations of the past.

use serde_json::{Map, Value, json};

use crate::members::text;

/// Annotations that described containers before there was a field.
///
/// Upstream: `initContainerAnnotations`.
const INIT_CONTAINERS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// Sets the alias of the service account in a pod or a template, and drops old annotations.
///
/// Upstream: `Convert_v1_PodSpec_To_core_PodSpec`, `dropInitContainerAnnotations`.
pub(super) fn of_pod(pod: &mut Value) {
    if let Some(spec) = pod.get_mut("spec") {
        service_account(spec);
    }
    let metadata = pod.get_mut("metadata").and_then(Value::as_object_mut);
    let annotations = metadata.and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        for annotation in INIT_CONTAINERS {
            annotations.remove(annotation);
        }
    }
}

/// The name wins over its alias.
fn service_account(spec: &mut Value) {
    let is_text = |member: &str| {
        spec.get(member)
            .is_none_or(|it| it.is_string() || it.is_null())
    };
    if !is_text("serviceAccountName") || !is_text("serviceAccount") {
        return;
    }
    let given = ["serviceAccountName", "serviceAccount"].map(|member| text(spec, member));
    let name = given.into_iter().find(|name| !name.is_empty());
    let Some(name) = name.map(|name| json!(name)) else {
        return;
    };
    if let Some(spec) = spec.as_object_mut() {
        set(spec, &name);
    }
}

fn set(spec: &mut Map<String, Value>, name: &Value) {
    for member in ["serviceAccountName", "serviceAccount"] {
        spec.insert(member.to_owned(), name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_the_service_account_wins() {
        for (spec, name) in [
            (json!({"serviceAccount": "a"}), "a"),
            (
                json!({"serviceAccount": "a", "serviceAccountName": "b"}),
                "b",
            ),
            (json!({"serviceAccountName": "b"}), "b"),
        ] {
            let mut pod = json!({"spec": spec});
            of_pod(&mut pod);
            let both = json!({"serviceAccount": name, "serviceAccountName": name});
            assert_eq!(pod["spec"], both);
        }
    }

    #[test]
    fn old_annotations_are_dropped() {
        let annotations = json!({"pod.beta.kubernetes.io/init-containers": "[]", "a": "b"});
        let mut pod = json!({"metadata": {"annotations": annotations}});
        of_pod(&mut pod);
        assert_eq!(pod["metadata"]["annotations"], json!({"a": "b"}));
    }
}
