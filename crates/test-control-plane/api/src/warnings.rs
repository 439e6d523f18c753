//! Warnings about accepted objects, besides those about unknown and repeated fields.

mod addresses;
mod definition;
mod fractions;
mod key_pair;
mod networks;
mod node_terms;
mod paths;
mod pods;
mod ports;
mod volumes;

use serde_json::Value;

use fractions::NULL;
use volumes::STORAGE_CLASS;

use crate::custom::DEFINITIONS;
use crate::kinds::{Kind, Subresource, Target};
use crate::members::{list_at, number_at, text, text_at};
use crate::options::DeleteOptions;

/// An annotation that restricted the secrets of a service account.
const MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// Completions and parallelism of an indexed job that are hard to track together.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const PARALLELISM_SOFT_MAX: i64 = 10_000;

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

/// Returns the warning about owners that occur several times. The server keeps one of each: those
/// of a body before admission, those of a patched object after it.
///
/// Upstream: `dedupOwnerReferencesAndAddWarning`.
pub fn of_owners(object: &Value, is_patched: bool) -> Option<String> {
    let mut seen = Vec::new();
    let mut repeated = Vec::new();
    let owners = list_at(object, "/metadata/ownerReferences");
    for owner in owners.filter(|owner| owner.is_object()) {
        if seen.contains(&owner) {
            repeated.push(text(owner, "uid"));
        } else {
            seen.push(owner);
        }
    }
    let moment = if is_patched {
        " after mutating admission happens"
    } else {
        ""
    };
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{moment}; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}

/// Returns the warnings about a new object that is valid.
///
/// Upstream: `WarningsOnCreate` of each kind.
pub fn of_create(kind: &Kind, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let name = text_at(new, "/metadata/name");
    let annotation = |key: &str| {
        new.pointer("/metadata/annotations")
            .and_then(|all| all.get(key))
    };
    match &*kind.storage {
        "pods" => {
            pods::of_name(name, "the Pod's hostname", &mut found);
            pods::of_pod(new, "", &mut found);
        }
        "cronjobs" | "deployments" | "jobs" | "replicasets" | "replicationcontrollers" => {
            pods::of_name(name, "Pod names and hostnames", &mut found);
            of_template(kind, new, &mut found);
        }
        "endpointslices" => {
            if text(new, "addressType") == "FQDN" {
                found.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
            }
            networks::endpoint_slice(new, &mut found);
        }
        "ingresses" => {
            let class = "kubernetes.io/ingress.class";
            if annotation(class).is_some() && new.pointer("/spec/ingressClassName").is_none() {
                found.push(format!(
                    "annotation {class:?} is deprecated, please use 'spec.ingressClassName' instead"
                ));
            }
        }
        "serviceaccounts" => found.extend(of_secrets(new, None)),
        "statefulsets" => {
            of_template(kind, new, &mut found);
            of_claim_templates(new, "", &mut found);
            of_history(new, &mut found);
        }
        _ => of_any(kind, new, &mut found),
    }
    found
}

/// Returns the warnings about a valid update. The generations of the objects tell whether it
/// changes the spec.
///
/// Upstream: `WarningsOnUpdate` of each kind.
pub fn of_update(kind: &Kind, target: Target, new: &Value, old: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Target::Part(part) = target {
        if part == Subresource::Status {
            networks::status(kind, new, &mut found);
        }
        return found;
    }
    let generation = |object: &Value| number_at(object, "/metadata/generation");
    let is_changed = generation(new) != generation(old);
    match &*kind.storage {
        "cronjobs" => {
            if is_changed {
                of_template(kind, new, &mut found);
            }
            if text_at(new, "/spec/schedule").contains("TZ") {
                found.push(
                    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                     https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more \
                     details"
                        .to_owned(),
                );
            }
        }
        "deployments" | "jobs" | "podtemplates" | "replicasets" if is_changed => {
            of_template(kind, new, &mut found);
        }
        // Upstream: the warnings are about the old template.
        "replicationcontrollers" if is_changed => of_template(kind, old, &mut found),
        "daemonsets" if new.pointer("/spec/template") != old.pointer("/spec/template") => {
            of_template(kind, new, &mut found);
        }
        // Upstream: people seldom change pods themselves.
        "daemonsets"
        | "deployments"
        | "ingresses"
        | "jobs"
        | "pods"
        | "podtemplates"
        | "replicasets"
        | "replicationcontrollers" => {}
        DEFINITIONS => {
            let known = definition::warnings(old);
            let added = definition::warnings(new).into_iter();
            found.extend(added.filter(|warning| !known.contains(warning)));
        }
        "endpointslices" => networks::endpoint_slice(new, &mut found),
        "serviceaccounts" => found.extend(of_secrets(new, Some(old))),
        "statefulsets" => {
            if is_changed {
                of_template(kind, new, &mut found);
            }
            of_claim_templates(new, ".Spec", &mut found);
            of_history(new, &mut found);
        }
        _ => of_any(kind, new, &mut found),
    }
    found
}

/// The warnings that creates and updates have alike.
fn of_any(kind: &Kind, new: &Value, found: &mut Vec<String>) {
    match &*kind.storage {
        "daemonsets" | "podtemplates" => of_template(kind, new, found),
        "networkpolicies" => networks::network_policy(new, found),
        "persistentvolumeclaims" => {
            if new
                .pointer("/metadata/annotations")
                .is_some_and(|all| all.get(STORAGE_CLASS).is_some())
            {
                found.push(format!(
                    "metadata.annotations[{STORAGE_CLASS}]: deprecated since v1.8; use \
                     \"storageClassName\" attribute instead"
                ));
            }
            volumes::of_claim(new.get("spec").unwrap_or(&NULL), "spec", found);
        }
        "persistentvolumes" => volumes::of_volume(new, found),
        "secrets" if text(new, "type") == "kubernetes.io/tls" => {
            found.extend(key_pair::warning(new));
        }
        "services" => networks::service(new, found),
        "storageclasses" => pods::of_topologies(new, found),
        "csistoragecapacities" => {
            node_terms::of_selector(new.get("nodeTopology").unwrap_or(&NULL), found);
        }
        "resourceslices" => {
            let driver = text_at(new, "/spec/driver");
            if driver.chars().any(char::is_uppercase) {
                found.push(format!(
                    "spec.driver: driver names should be lowercase; {driver:?} contains uppercase \
                     characters"
                ));
            }
        }
        "runtimeclasses" => {
            let selector = new.pointer("/scheduling/nodeSelector");
            node_terms::of_labels(selector, |_| "scheduling.nodeSelector".to_owned(), found);
        }
        DEFINITIONS => found.extend(definition::warnings(new)),
        _ => {}
    }
}

/// The warnings about the pod template of a workload.
fn of_template(kind: &Kind, object: &Value, found: &mut Vec<String>) {
    let spec = object.get("spec").unwrap_or(&NULL);
    let (holder, path) = match &*kind.storage {
        "cronjobs" => (
            spec.pointer("/jobTemplate/spec").unwrap_or(&NULL),
            "spec.jobTemplate.spec",
        ),
        "podtemplates" => (object, ""),
        _ => (spec, "spec"),
    };
    let is_large = text(holder, "completionMode") == "Indexed"
        && number_at(holder, "/completions") > COMPLETIONS_SOFT_MAX
        && number_at(holder, "/parallelism") > PARALLELISM_SOFT_MAX;
    if is_large {
        found.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a \
             parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes \
             when a big number of indexes fail"
        ));
    }
    let path = match path {
        "" => "template.".to_owned(),
        path => format!("{path}.template."),
    };
    if let Some(template) = holder.get("template") {
        pods::of_pod(template, &path, found);
    }
}

fn of_claim_templates(set: &Value, suffix: &str, found: &mut Vec<String>) {
    for (i, claim) in list_at(set, "/spec/volumeClaimTemplates").enumerate() {
        let path = format!("spec.volumeClaimTemplates[{i}]{suffix}");
        volumes::of_claim(claim.get("spec").unwrap_or(&NULL), &path, found);
    }
}

fn of_history(set: &Value, found: &mut Vec<String>) {
    if number_at(set, "/spec/revisionHistoryLimit") < 0 {
        found.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a \
             value >= 0 is recommended"
                .to_owned(),
        );
    }
}

fn of_secrets(new: &Value, old: Option<&Value>) -> Option<String> {
    let has = |object: &Value| {
        let annotations = object.pointer("/metadata/annotations");
        annotations.is_some_and(|all| all.get(MOUNTABLE_SECRETS).is_some())
    };
    let is_new = has(new) && !old.is_some_and(has);
    is_new.then(|| {
        format!(
            "metadata.annotations[{MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate \
             namespaces to isolate access to mounted secrets"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    #[test]
    fn owners_count_once() {
        let owner = json!({"kind": "A", "name": "a", "uid": "u"});
        let object = json!({"metadata": {"ownerReferences": [owner, owner]}});
        let warning = of_owners(&object, true).unwrap();
        assert!(
            warning.contains(" after mutating admission happens; "),
            "{warning}"
        );
        assert_eq!(of_owners(&json!({}), false), None);
    }

    #[test]
    fn updates_warn_about_changed_templates_alone() {
        let kind = kinds::by_resource("apps", "v1", "deployments").unwrap();
        let of = |generation: i64| {
            let spec = json!({"template": {"spec": {"terminationGracePeriodSeconds": -1}}});
            json!({"metadata": {"generation": generation}, "spec": spec})
        };
        let found = |new| of_update(kind, Target::Object, &new, &of(1));
        assert_eq!(found(of(1)), [""; 0]);
        assert!(found(of(2))[0].starts_with("spec.template.spec.terminationGracePeriodSeconds: "));
    }
}
