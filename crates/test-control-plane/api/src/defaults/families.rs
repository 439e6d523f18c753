//! The IP families of services. This cluster has IPv4 addresses alone.

use serde_json::{Map, Value, json};

use super::services::{keep_allocated, text, texts};
use crate::members::object_mut;
use crate::status::FieldError;
use crate::validation::cluster_ip_errors;

const POLICY: &str = "ipFamilyPolicy";
const POLICY_PATH: &str = "spec.ipFamilyPolicy";
const SINGLE: &str = "SingleStack";

/// Completes addresses and IP families from each other and from the stored service. Allocates no
/// address.
///
/// Upstream: `beginCreate`, `beginUpdate`.
///
/// # Errors
///
/// The addresses and families contradict each other, or the cluster lacks a family.
pub(super) fn complete(service: &mut Value, old: Option<&Value>) -> Result<(), Vec<FieldError>> {
    let old_spec = old.and_then(|old| old.get("spec")?.as_object());
    let spec = object_mut(service, "spec");
    match old_spec {
        Some(old) => keep_allocated(spec, old),
        None if !text(spec, "clusterIP").is_empty() && texts(spec, "clusterIPs").is_empty() => {
            let address = json!([text(spec, "clusterIP")]);
            spec.insert("clusterIPs".to_owned(), address);
        }
        None => {}
    }
    if text(spec, "type") == "ExternalName" || keeps_preference(spec, old_spec) {
        return Ok(());
    }
    set_policy(spec, old_spec);
    let errors = cluster_ip_errors(service, old);
    if !errors.is_empty() {
        return Err(errors);
    }
    let spec = object_mut(service, "spec");
    let errors = infer(spec, old_spec);
    if !errors.is_empty() {
        return Err(errors);
    }
    let selects = spec
        .get("selector")
        .and_then(Value::as_object)
        .is_some_and(|it| !it.is_empty());
    if text(spec, "clusterIP") == "None" && !selects {
        complete_free(spec);
        return Ok(());
    }
    let errors = configured(spec);
    if !errors.is_empty() {
        return Err(errors);
    }
    if texts(spec, "ipFamilies").is_empty() {
        spec.insert("ipFamilies".to_owned(), json!(["IPv4"]));
    }
    Ok(())
}

/// Returns true for an update that changes nothing about a preference for both families.
///
/// Upstream: `isMatchingPreferDualStackClusterIPFields`.
fn keeps_preference(spec: &Map<String, Value>, old: Option<&Map<String, Value>>) -> bool {
    let Some(old) = old else { return false };
    let is_same = |member: &str| spec.get(member) == old.get(member);
    text(spec, POLICY) == "PreferDualStack"
        && ["type", POLICY, "clusterIPs", "ipFamilies"]
            .into_iter()
            .all(is_same)
}

fn set_policy(spec: &mut Map<String, Value>, old: Option<&Map<String, Value>>) {
    if spec.get(POLICY).is_some_and(|policy| !policy.is_null()) {
        return;
    }
    let stored = old
        .and_then(|old| old.get(POLICY))
        .filter(|policy| !policy.is_null());
    let selects = spec
        .get("selector")
        .and_then(Value::as_object)
        .is_some_and(|it| !it.is_empty());
    let policy = match stored {
        Some(policy) => policy.clone(),
        None if text(spec, "clusterIP") == "None" && !selects => json!("RequireDualStack"),
        None => json!(SINGLE),
    };
    spec.insert(POLICY.to_owned(), policy);
}

/// Infers families from addresses.
fn infer(spec: &mut Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_single = text(spec, POLICY) == SINGLE;
    let policy = spec.get(POLICY).cloned().unwrap_or_default();
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(POLICY_PATH, &policy, detail));
    let pairs = [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")];
    for (member, noun) in pairs {
        let before = old.map(|old| texts(old, member)).unwrap_or_default();
        let given = texts(spec, member).len();
        if is_single && old.is_some() && texts(spec, member) == before && given > 1 {
            let first = json!([before[0]]);
            spec.insert(member.to_owned(), first);
        } else if !is_single && given > 0 && given < before.len() {
            refuse(&format!(
                "must be 'SingleStack' to release the secondary {noun}"
            ));
        }
    }
    for (member, noun) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if is_single && texts(spec, member).len() == 2 {
            refuse(&format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {noun} are specified"
            ));
        }
    }
    let families = texts(spec, "ipFamilies").len();
    let mut added = Vec::new();
    let addresses = spec.get("clusterIPs").cloned().unwrap_or_default();
    let given = texts(spec, "clusterIPs");
    for (i, address) in given
        .iter()
        .enumerate()
        .take_while(|(_, it)| **it != "None")
    {
        if i >= families && address.contains(':') {
            let detail = "IPv6 is not configured on this cluster";
            errors.push(FieldError::invalid(
                format!("spec.clusterIPs[{i}]"),
                &addresses,
                detail,
            ));
        } else if i >= families {
            added.push(json!("IPv4"));
        }
    }
    if !added.is_empty() {
        let families = spec.entry("ipFamilies").or_insert(json!([]));
        if let Some(families) = families.as_array_mut() {
            families.extend(added);
        }
    }
    errors
}

/// Completes the families of a headless service without a selector, which may have both.
fn complete_free(spec: &mut Map<String, Value>) {
    let mut families = texts(spec, "ipFamilies");
    if families.is_empty() {
        families.push("IPv4");
    }
    if let [one] = families[..]
        && text(spec, POLICY) != SINGLE
    {
        families.push(if one == "IPv4" { "IPv6" } else { "IPv4" });
    }
    let families = json!(families);
    spec.insert("ipFamilies".to_owned(), families);
}

/// Returns an error for each family that the cluster lacks.
fn configured(spec: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(spec, POLICY) == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(
            POLICY_PATH,
            &json!("RequireDualStack"),
            detail,
        ));
    }
    let families = texts(spec, "ipFamilies");
    for (i, family) in families
        .iter()
        .enumerate()
        .filter(|(_, family)| **family != "IPv4")
    {
        let field = format!("spec.ipFamilies[{i}]");
        errors.push(FieldError::invalid(
            field,
            &json!(family),
            "not configured on this cluster",
        ));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(spec: &Value, old: Option<&Value>) -> Result<Value, String> {
        let mut service = json!({"spec": spec});
        let old = old.map(|spec| json!({"spec": spec}));
        let done = complete(&mut service, old.as_ref());
        done.map_err(|errors| format!("{errors:?}"))?;
        Ok(service["spec"].take())
    }

    #[test]
    fn families_follow_addresses() {
        let spec = completed(&json!({"type": "ClusterIP", "clusterIP": "10.0.0.1"}), None).unwrap();
        assert_eq!(spec["clusterIPs"], json!(["10.0.0.1"]));
        assert_eq!(spec["ipFamilies"], json!(["IPv4"]));
        assert_eq!(spec["ipFamilyPolicy"], "SingleStack");
        let headless = json!({"type": "ClusterIP", "clusterIP": "None"});
        let spec = completed(&headless, None).unwrap();
        assert_eq!(spec["ipFamilies"], json!(["IPv4", "IPv6"]));
        let error = completed(&json!({"type": "ClusterIP", "ipFamilies": ["IPv6"]}), None);
        assert!(
            error
                .unwrap_err()
                .contains("not configured on this cluster")
        );
    }

    #[test]
    fn old_addresses_stay_unless_the_request_clears_them() {
        let old = json!({
            "type": "ClusterIP",
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
        });
        assert_eq!(
            completed(&json!({"type": "ClusterIP"}), Some(&old)).unwrap(),
            old
        );
        let external = json!({"type": "ExternalName", "clusterIPs": ["10.0.0.1"]});
        let spec = completed(&external, Some(&old)).unwrap();
        assert_eq!(spec, json!({"type": "ExternalName"}));
    }
}
