//! Warnings about accepted objects, besides those about unknown and repeated members.

mod definition;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::custom::DEFINITIONS;
use crate::kinds::Kind;
use crate::members::{list_at, text};
use crate::options::DeleteOptions;
use crate::validation;

/// Returns the warning for a deprecated resource.
pub fn deprecation(kind: &Kind) -> Option<&str> {
    if let Some(custom) = &kind.custom {
        return custom.warning.as_deref();
    }
    match &*kind.storage {
        "componentstatuses" => Some("v1 ComponentStatus is deprecated in v1.19+"),
        "endpoints" => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        _ => None,
    }
}

/// Returns the warning about a deletion.
pub fn of_deletion(kind: &Kind, options: &DeleteOptions) -> Option<&'static str> {
    let is_surprising = &*kind.storage == "jobs" && options.propagation.is_none();
    is_surprising.then_some(
        "child pods are preserved by default when jobs are deleted; set \
         propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
         this warning",
    )
}

/// Returns true if the kind has warnings other than those about owner references.
pub fn has_rules(kind: &Kind) -> bool {
    matches!(
        &*kind.storage,
        "daemonsets"
            | "deployments"
            | "persistentvolumeclaims"
            | "pods"
            | "podtemplates"
            | "replicasets"
            | "replicationcontrollers"
            | "services"
            | "statefulsets"
            | DEFINITIONS
    )
}

/// Returns the warnings about an accepted object.
pub fn of_object(kind: &Kind, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    owners(object, &mut found);
    let null = Value::Null;
    let spec = object.get("spec").unwrap_or(&null);
    match &*kind.storage {
        "pods" => {
            let name = object.pointer("/metadata/name").and_then(Value::as_str);
            pod_name(name.unwrap_or_default(), &mut found);
            pod_spec(spec, "spec", &mut found);
        }
        "podtemplates" => {
            let spec = object.pointer("/template/spec").unwrap_or(&null);
            pod_spec(spec, "template.spec", &mut found);
        }
        "daemonsets" | "deployments" | "replicasets" | "replicationcontrollers" => {
            let spec = spec.pointer("/template/spec").unwrap_or(&null);
            pod_spec(spec, "spec.template.spec", &mut found);
        }
        "statefulsets" => stateful_set(spec, &mut found),
        "persistentvolumeclaims" => claim_spec(spec, "spec", &mut found),
        "services" => service(spec, &mut found),
        DEFINITIONS => found.extend(definition::warnings(object)),
        _ => {}
    }
    found
}

fn owners(object: &Value, found: &mut Vec<String>) {
    let mut seen = Vec::new();
    let mut repeated = Vec::new();
    for owner in list_at(object, "/metadata/ownerReferences") {
        if seen.contains(&owner) {
            repeated.push(text(owner, "uid"));
        } else {
            seen.push(owner);
        }
    }
    if !repeated.is_empty() {
        found.push(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        ));
    }
}

fn pod_name(name: &str, found: &mut Vec<String>) {
    let wrong = validation::dns_label(name);
    if !name.is_empty() && !wrong.is_empty() {
        found.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising \
             behavior; a DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
}

fn stateful_set(spec: &Value, found: &mut Vec<String>) {
    let null = Value::Null;
    let template = spec.pointer("/template/spec").unwrap_or(&null);
    pod_spec(template, "spec.template.spec", found);
    for (i, claim) in list_at(spec, "/volumeClaimTemplates").enumerate() {
        let path = format!("spec.volumeClaimTemplates[{i}].Spec");
        claim_spec(claim.get("spec").unwrap_or(&null), &path, found);
    }
    let limit = spec.get("revisionHistoryLimit").and_then(Value::as_i64);
    if limit.is_some_and(|limit| limit < 0) {
        found.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a \
             value >= 0 is recommended"
                .to_owned(),
        );
    }
}

fn claim_spec(spec: &Value, path: &str, found: &mut Vec<String>) {
    for list in ["requests", "limits"] {
        let storage = spec.pointer(&format!("/resources/{list}/storage"));
        if let Some(quantity) = storage.filter(|quantity| is_fractional(quantity)) {
            found.push(format!(
                "{path}.resources.{list}[storage]: fractional byte value {quantity} is invalid, \
                 must be an integer"
            ));
        }
    }
}

/// Returns true if a quantity of bytes has a fraction of a byte.
fn is_fractional(quantity: &Value) -> bool {
    quantity.as_str().is_some_and(|text| text.ends_with('m'))
}

fn service(spec: &Value, found: &mut Vec<String>) {
    let is_headless = text(spec, "clusterIP") == "None";
    if is_headless && text(spec, "sessionAffinity") == "ClientIP" {
        found.push("spec.SessionAffinity is ignored for headless services".to_owned());
    }
    if is_headless && !text(spec, "loadBalancerIP").is_empty() {
        found.push("spec.loadBalancerIP is ignored for headless services".to_owned());
    }
    if text(spec, "type") == "ExternalName" && list_at(spec, "/externalIPs").next().is_some() {
        found.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
}

/// Deprecated node labels: the old name, the version of its deprecation, and the new name.
const OLD_NODE_LABELS: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "v1.17",
        "topology.kubernetes.io/region",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "v1.17",
        "topology.kubernetes.io/zone",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "v1.17",
        "node.kubernetes.io/instance-type",
    ),
];

/// Upstream: `warningsForPodSpecAndMeta`.
fn pod_spec(spec: &Value, path: &str, found: &mut Vec<String>) {
    let selector = spec.get("nodeSelector").and_then(Value::as_object);
    for key in selector.into_iter().flatten().map(|(key, _)| key) {
        if let Some((_, since, instead)) = OLD_NODE_LABELS.iter().find(|(old, _, _)| old == key) {
            found.push(format!(
                "{path}.nodeSelector[{key}]: deprecated since {since}; use \"{instead}\" instead"
            ));
        }
    }
    let mut seen = BTreeSet::new();
    for (i, secret) in list_at(spec, "/imagePullSecrets").enumerate() {
        let name = text(secret, "name");
        if name.is_empty() {
            found.push(format!(
                "{path}.imagePullSecrets[{i}].name: invalid empty name \"\""
            ));
        } else if !seen.insert(name) {
            found.push(format!(
                "{path}.imagePullSecrets[{i}].name: duplicate name {name:?}"
            ));
        }
    }
    let grace = spec
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64);
    if grace.is_some_and(|seconds| seconds < 0) {
        found.push(format!(
            "{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and \
             will be treated as 1"
        ));
    }
    for containers in ["initContainers", "containers"] {
        for (i, container) in list_at(spec, &format!("/{containers}")).enumerate() {
            of_container(container, &format!("{path}.{containers}[{i}]"), found);
        }
    }
}

fn of_container(container: &Value, path: &str, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (i, variable) in list_at(container, "/env").enumerate() {
        let name = text(variable, "name");
        // A value that refers to its own name extends the previous definition.
        let own = format!("$({name})");
        if !seen.insert(name) && !text(variable, "value").contains(&own) {
            found.push(format!(
                "{path}.env[{i}]: hides previous definition of {name:?}, which may be dropped \
                 when using apply"
            ));
        }
    }
    for list in ["limits", "requests"] {
        let quantities = container.pointer(&format!("/resources/{list}"));
        for (resource, quantity) in quantities.and_then(Value::as_object).into_iter().flatten() {
            if matches!(resource.as_str(), "memory" | "ephemeral-storage")
                && is_fractional(quantity)
            {
                found.push(format!(
                    "{path}.resources.{list}[{resource}]: fractional byte value {quantity} is \
                     invalid, must be an integer"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    #[test]
    fn warnings_name_the_path() {
        let pods = kinds::by_resource("", "v1", "pods").unwrap();
        let owner = json!({"kind": "A", "name": "a", "uid": "u"});
        let pod = json!({
            "metadata": {"name": "a.b", "ownerReferences": [owner, owner]},
            "spec": {
                "nodeSelector": {"beta.kubernetes.io/os": "linux"},
                "imagePullSecrets": [{"name": "s"}, {"name": "s"}, {}],
                "terminationGracePeriodSeconds": -1,
                "containers": [{
                    "env": [{"name": "A"}, {"name": "A"}, {"name": "A", "value": "$(A)b"}],
                    "resources": {"limits": {"memory": "100m"}},
                }],
            },
        });
        let starts = [
            ".metadata.ownerReferences contains duplicate entries;",
            "metadata.name: this is used in the Pod's hostname",
            "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14;",
            "spec.imagePullSecrets[1].name: duplicate name \"s\"",
            "spec.imagePullSecrets[2].name: invalid empty name \"\"",
            "spec.terminationGracePeriodSeconds: must be >= 0;",
            "spec.containers[0].env[1]: hides previous definition of \"A\"",
            "spec.containers[0].resources.limits[memory]: fractional byte value \"100m\"",
        ];
        let found = of_object(pods, &pod);
        assert_eq!(found.len(), starts.len(), "{found:?}");
        for (found, start) in found.iter().zip(starts) {
            assert!(found.starts_with(start), "{found}");
        }
    }
}
