//! Fields of a new pod that the server derives from others before validation.

use serde_json::{Value, json};

use crate::members::{list, object_mut, text};
use crate::validation::{annotations, is_app_armor_profile};

/// Fields of the affinities of a pod, and of their terms.
const AFFINITIES: [&str; 2] = ["podAffinity", "podAntiAffinity"];
const TERMS: [(&str, &str); 2] = [
    (
        "preferredDuringSchedulingIgnoredDuringExecution",
        "/podAffinityTerm",
    ),
    ("requiredDuringSchedulingIgnoredDuringExecution", ""),
];

/// Adds the pod's labels of `matchLabelKeys` and `mismatchLabelKeys` to selectors.
///
/// Upstream: `mutatePodAffinity`, `mutateTopologySpreadConstraints`.
pub(super) fn select_label_keys(pod: &mut Value) {
    let Some(labels) = pod.pointer("/metadata/labels").cloned() else {
        return;
    };
    for affinity in AFFINITIES {
        for (member, inner) in TERMS {
            let terms = pod.pointer_mut(&format!("/spec/affinity/{affinity}/{member}"));
            for term in terms.and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(term) = term.pointer_mut(inner) {
                    add_label_keys(term, "matchLabelKeys", "In", &labels);
                    add_label_keys(term, "mismatchLabelKeys", "NotIn", &labels);
                }
            }
        }
    }
    let constraints = pod.pointer_mut("/spec/topologySpreadConstraints");
    for constraint in constraints
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        add_label_keys(constraint, "matchLabelKeys", "In", &labels);
    }
}

/// Upstream: `applyLabelKeysToLabelSelector`.
fn add_label_keys(term: &mut Value, member: &str, operator: &str, labels: &Value) {
    let keys = list(term, member).filter_map(Value::as_str);
    let known = keys.filter_map(|key| Some((key, labels.get(key)?)));
    let added: Vec<Value> = known
        .map(|(key, value)| json!({"key": key, "operator": operator, "values": [value]}))
        .collect();
    let selector = term.get_mut("labelSelector").and_then(Value::as_object_mut);
    if let Some(selector) = selector.filter(|_| !added.is_empty()) {
        let expressions = selector.entry("matchExpressions").or_insert(json!([]));
        if let Some(expressions) = expressions.as_array_mut() {
            expressions.extend(added);
        }
    }
}

/// Copies the `AppArmor` annotations of a pod into the fields of its containers, and returns the
/// warnings about them.
///
/// Upstream: `applyAppArmorVersionSkew`.
pub(super) fn take_app_armor(pod: &mut Value) -> Vec<String> {
    let mut found = Vec::new();
    let Some(all) = pod.pointer("/metadata/annotations").cloned() else {
        return found;
    };
    if pod
        .pointer("/spec/os/name")
        .is_some_and(|name| name == "windows")
    {
        return found;
    }
    let of_pod = pod
        .pointer("/spec/securityContext/appArmorProfile")
        .cloned();
    for member in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = pod.pointer_mut(&format!("/spec/{member}"));
        let containers = containers.and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let key = format!("{}{}", annotations::APP_ARMOR, text(container, "name"));
            let Some(annotation) = all.get(&key).and_then(Value::as_str) else {
                continue;
            };
            if container
                .pointer("/securityContext/appArmorProfile")
                .is_some()
            {
                continue;
            }
            let profile = annotations::app_armor_profile(annotation);
            let profile = profile.filter(is_app_armor_profile);
            if profile.is_some() && profile == of_pod {
                continue;
            }
            found.push(annotations::app_armor_warning("", &key));
            if let Some(profile) = profile {
                object_mut(container, "securityContext")
                    .insert("appArmorProfile".to_owned(), profile);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotated_profiles_become_fields() {
        let key = "container.apparmor.security.beta.kubernetes.io/c";
        let mut pod = json!({
            "metadata": {"annotations": {key: "localhost/p"}},
            "spec": {"containers": [{"name": "c"}]},
        });
        assert_eq!(take_app_armor(&mut pod).len(), 1);
        let profile = json!({"type": "Localhost", "localhostProfile": "p"});
        let context = &pod["spec"]["containers"][0]["securityContext"];
        assert_eq!(context["appArmorProfile"], profile);
    }

    #[test]
    fn label_keys_select_the_pods_own_labels() {
        let term = json!({"matchLabelKeys": ["a", "b"], "labelSelector": {}});
        let mut pod = json!({
            "metadata": {"labels": {"a": "x"}},
            "spec": {"topologySpreadConstraints": [term]},
        });
        select_label_keys(&mut pod);
        let expression = json!({"key": "a", "operator": "In", "values": ["x"]});
        let constraint = &pod["spec"]["topologySpreadConstraints"][0];
        assert_eq!(
            constraint["labelSelector"],
            json!({"matchExpressions": [expression]})
        );
    }
}
