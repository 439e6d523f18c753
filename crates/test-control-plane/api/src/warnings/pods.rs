//! Warnings about pods and pod templates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fractions::{NULL, fractional, is_fractional};
use super::node_terms::{node_label, of_labels, of_term};
use super::volumes::of_volumes;
use super::{addresses, ports};
use crate::members::{list, list_at, text};
use crate::validation::{self, annotations};

/// Annotations without effect, and their messages.
///
/// Upstream: `deprecatedAnnotations`.
const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Resources in bytes.
const BYTES: [&str; 2] = ["memory", "ephemeral-storage"];

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// A pod or a pod template, and the path before its fields.
struct Subject<'a> {
    spec: &'a Value,
    annotations: &'a Value,
    path: &'a str,
}

impl Subject<'_> {
    /// Returns true if the pod has an annotation.
    fn has(&self, key: &str) -> bool {
        self.annotations.get(key).is_some()
    }

    /// The warning about an annotation.
    fn annotation(&self, key: &str, message: &str) -> String {
        format!("{}metadata.annotations[{key}]: {message}", self.path)
    }
}

/// The warning about a name that pods use in the network.
pub(super) fn of_name(name: &str, place: &str, found: &mut Vec<String>) {
    let wrong = validation::dns_label(name);
    if !wrong.is_empty() {
        found.push(format!(
            "metadata.name: this is used in {place}, which can result in surprising behavior; a \
             DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
}

/// The warnings about a pod, whose path is empty, or a pod template, whose path ends in a dot.
///
/// Upstream: `warningsForPodSpecAndMeta`.
pub(super) fn of_pod(pod: &Value, path: &str, found: &mut Vec<String>) {
    let subject = Subject {
        spec: pod.get("spec").unwrap_or(&NULL),
        annotations: pod.pointer("/metadata/annotations").unwrap_or(&NULL),
        path,
    };
    let spec = subject.spec;
    let at = format!("{path}spec");
    node_labels(spec, &at, found);
    for (key, message) in OLD_ANNOTATIONS {
        if subject.has(key) {
            found.push(subject.annotation(key, message));
        }
    }
    of_volumes(spec, &at, found);
    repeated(spec, &at, "hostAliases", ["ip", "ip"], found);
    repeated(spec, &at, "imagePullSecrets", ["name", "name"], found);
    for (i, _) in list(spec, "imagePullSecrets")
        .enumerate()
        .filter(|(_, secret)| text(secret, "name").is_empty())
    {
        let place = format!("{at}.imagePullSecrets[{i}].name");
        found.push(format!("{place}: invalid empty name \"\""));
    }
    bytes(spec.get("overhead"), &format!("{at}.overhead"), found);
    let seccomp = annotations::SECCOMP_POD;
    if subject.has(seccomp) && spec.pointer("/securityContext/seccompProfile").is_none() {
        found.push(subject.annotation(seccomp, OLD_SECCOMP));
    }
    let containers = located_containers(spec, &at);
    for (container, place) in &containers {
        profiles(&subject, container, found);
        for list in ["limits", "requests"] {
            // Memory of both lists comes before storage.
            let quantities = container.pointer(&format!("/resources/{list}"));
            let memory = quantities.and_then(|all| all.get("memory"));
            one_of_bytes(memory, &format!("{place}.resources.{list}[memory]"), found);
        }
        for list in ["limits", "requests"] {
            let quantities = container.pointer(&format!("/resources/{list}"));
            let storage = quantities.and_then(|all| all.get("ephemeral-storage"));
            let place = format!("{place}.resources.{list}[ephemeral-storage]");
            one_of_bytes(storage, &place, found);
        }
        variables(container, place, found);
    }
    ports::of_containers(&containers, found);
    let grace = spec.get("terminationGracePeriodSeconds");
    if grace
        .and_then(Value::as_i64)
        .is_some_and(|seconds| seconds < 0)
    {
        found.push(format!(
            "{at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and \
             will be treated as 1"
        ));
    }
    affinity(spec, &at, found);
    for (i, server) in list_at(spec, "/dnsConfig/nameservers").enumerate() {
        let place = format!("{at}.dnsConfig.nameservers[{i}]");
        found.extend(addresses::of_ip(&place, server));
    }
    for (i, alias) in list(spec, "hostAliases").enumerate() {
        let place = format!("{at}.hostAliases[{i}].ip");
        found.extend(addresses::of_ip(&place, alias.get("ip").unwrap_or(&NULL)));
    }
}

const OLD_SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

/// Returns the containers of all lists with their paths.
fn located_containers<'a>(spec: &'a Value, at: &str) -> Vec<(&'a Value, String)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let located = lists.iter().flat_map(|name| {
        let containers = list(spec, name).enumerate();
        containers.map(move |(i, container)| (container, format!("{at}.{name}[{i}]")))
    });
    located.collect()
}

fn node_labels(spec: &Value, at: &str, found: &mut Vec<String>) {
    let place = |key: &str| format!("{at}.nodeSelector[{key}]");
    of_labels(spec.get("nodeSelector"), place, found);
    let affinity = spec.pointer("/affinity/nodeAffinity").unwrap_or(&NULL);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = list_at(affinity, &format!("/{required}/nodeSelectorTerms"));
    for (i, term) in terms.enumerate() {
        let place = format!("{at}.affinity.nodeAffinity.{required}.nodeSelectorTerms[{i}]");
        of_term(term, false, &place, found);
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for (i, term) in list(affinity, preferred).enumerate() {
        let place = format!("{at}.affinity.nodeAffinity.{preferred}[{i}].preference");
        of_term(term.get("preference").unwrap_or(&NULL), true, &place, found);
    }
    for (i, constraint) in list(spec, "topologySpreadConstraints").enumerate() {
        let place = format!("{at}.topologySpreadConstraints[{i}]");
        let key = text(constraint, "topologyKey");
        if let Some(message) = node_label(key) {
            found.push(format!("{place}.topologyKey: {key} is {message}"));
        }
        if constraint.get("labelSelector").is_none_or(Value::is_null) {
            found.push(format!("{place}.labelSelector: {NO_SELECTOR}"));
        }
    }
}

/// The warnings about the topologies of a storage class.
///
/// Upstream: `GetWarningsForStorageClass`.
pub(super) fn of_topologies(class: &Value, found: &mut Vec<String>) {
    for (i, topology) in list(class, "allowedTopologies").enumerate() {
        for (j, expression) in list(topology, "matchLabelExpressions").enumerate() {
            if let Some(message) = node_label(text(expression, "key")) {
                found.push(format!(
                    "allowedTopologies[{i}].matchLabelExpressions[{j}].key: {message}"
                ));
            }
        }
    }
}

/// Warns about elements of a list with the same text in a field.
fn repeated(
    spec: &Value,
    at: &str,
    name: &str,
    [member, noun]: [&str; 2],
    found: &mut Vec<String>,
) {
    let mut seen = BTreeSet::new();
    for (i, element) in list(spec, name).enumerate() {
        let value = text(element, member);
        if !seen.insert(value) {
            found.push(format!(
                "{at}.{name}[{i}].{member}: duplicate {noun} {value:?}"
            ));
        }
    }
}

fn bytes(quantities: Option<&Value>, place: &str, found: &mut Vec<String>) {
    for resource in BYTES {
        let quantity = quantities.and_then(|all| all.get(resource));
        one_of_bytes(quantity, &format!("{place}[{resource}]"), found);
    }
}

fn one_of_bytes(quantity: Option<&Value>, place: &str, found: &mut Vec<String>) {
    if let Some(quantity) = quantity.filter(|quantity| is_fractional(quantity)) {
        found.push(fractional(place, quantity));
    }
}

/// Warns about annotations for a container that has no such fields.
fn profiles(subject: &Subject<'_>, container: &Value, found: &mut Vec<String>) {
    let name = text(container, "name");
    let own = |member: &str| container.pointer(&format!("/securityContext/{member}"));
    let seccomp = format!("{}{name}", annotations::SECCOMP);
    if subject.has(&seccomp) && own("seccompProfile").is_none() {
        found.push(subject.annotation(&seccomp, OLD_SECCOMP));
    }
    let key = format!("{}{name}", annotations::APP_ARMOR);
    let annotation = subject.annotations.get(&key).and_then(Value::as_str);
    // The annotations of pods are copied into their fields.
    let Some(annotation) = annotation.filter(|_| !subject.path.is_empty()) else {
        return;
    };
    let of_pod = subject.spec.pointer("/securityContext/appArmorProfile");
    let is_same = of_pod.is_some() && of_pod == annotations::app_armor_profile(annotation).as_ref();
    if own("appArmorProfile").is_none() && !is_same {
        found.push(annotations::app_armor_warning(subject.path, &key));
    }
}

fn variables(container: &Value, place: &str, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (i, variable) in list(container, "env").enumerate() {
        let name = text(variable, "name");
        // A value that refers to its own name extends the previous definition.
        let own = format!("$({name})");
        let value = text(variable, "value");
        let extends = value.contains(&own) && value != own;
        if !seen.insert(name) && !extends {
            found.push(format!(
                "{place}.env[{i}]: hides previous definition of {name:?}, which may be dropped \
                 when using apply"
            ));
        }
    }
}

fn affinity(spec: &Value, at: &str, found: &mut Vec<String>) {
    for name in ["podAffinity", "podAntiAffinity"] {
        let affinity = spec.pointer(&format!("/affinity/{name}")).unwrap_or(&NULL);
        for (member, inner) in [
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            (
                "preferredDuringSchedulingIgnoredDuringExecution",
                ".podAffinityTerm",
            ),
        ] {
            for (i, term) in list(affinity, member).enumerate() {
                let term = match inner {
                    "" => term,
                    _ => term.get("podAffinityTerm").unwrap_or(&NULL),
                };
                if term.get("labelSelector").is_none_or(Value::is_null) {
                    let place = format!("{at}.affinity.{name}.{member}[{i}]{inner}");
                    found.push(format!("{place}.labelSelector: {NO_SELECTOR}"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn warnings_name_the_path() {
        let pod = json!({
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
            "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14;",
            "spec.imagePullSecrets[1].name: duplicate name \"s\"",
            "spec.imagePullSecrets[2].name: invalid empty name \"\"",
            "spec.containers[0].resources.limits[memory]: fractional byte value \"100m\"",
            "spec.containers[0].env[1]: hides previous definition of \"A\"",
            "spec.terminationGracePeriodSeconds: must be >= 0;",
        ];
        let mut found = Vec::new();
        of_pod(&pod, "", &mut found);
        assert_eq!(found.len(), starts.len(), "{found:?}");
        for (found, start) in found.iter().zip(starts) {
            assert!(found.starts_with(start), "{found}");
        }
    }
}
