//! Defaults of services.

use serde_json::{Map, Value, json};

use crate::members::object_mut;

/// Removes the settings of an affinity that the service lacks.
///
/// Upstream: `SetDefaults_Service`, besides the table
pub(super) fn set_defaults(service: &mut Value) {
    if let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut)
        && text(spec, "sessionAffinity") != "ClientIP"
    {
        spec.remove("sessionAffinityConfig");
    }
}

/// Completes the cluster IPs and IP families from each other. Allocates no address.
pub(super) fn complete(value: &mut Value) {
    let spec = object_mut(value, "spec");
    if text(spec, "type") == "ExternalName" {
        return;
    }
    default_families(spec);
    let address = text(spec, "clusterIP").to_owned();
    let first = spec.get("clusterIPs").and_then(|list| list.get(0)).cloned();
    if address.is_empty() {
        if let Some(first) = first {
            spec.insert("clusterIP".to_owned(), first);
        }
    } else if first.is_none() {
        spec.insert("clusterIPs".to_owned(), json!([address]));
    }
}

fn default_families(spec: &mut Map<String, Value>) {
    let families = if text(spec, "ipFamilyPolicy") == "RequireDualStack" {
        json!(["IPv4", "IPv6"])
    } else {
        json!(["IPv4"])
    };
    // A headless service without a selector may use both IP families.
    let is_free = text(spec, "clusterIP") == "None"
        && spec
            .get("selector")
            .and_then(Value::as_object)
            .is_none_or(Map::is_empty);
    if is_free && !spec.contains_key("ipFamilyPolicy") {
        spec.insert("ipFamilyPolicy".to_owned(), json!("RequireDualStack"));
        spec.entry("ipFamilies").or_insert(json!(["IPv4", "IPv6"]));
        return;
    }
    if text(spec, "ipFamilyPolicy").is_empty() {
        spec.insert("ipFamilyPolicy".to_owned(), json!("SingleStack"));
    }
    spec.entry("ipFamilies").or_insert(families);
}

/// Copies previously allocated values that the request omits.
///
/// Upstream: `patchAllocatedValues`.
pub fn keep_allocated(new: &mut Value, old: &Value) {
    let null = Value::Null;
    let before = old.get("spec").unwrap_or(&null);
    let needs_address = |spec: &Value| spec.get("type") != Some(&json!("ExternalName"));
    let spec = object_mut(new, "spec");
    if needs_address(before) && needs_address(&Value::Object(spec.clone())) {
        if text(spec, "clusterIP").is_empty() {
            copy(spec, before, "clusterIP");
            copy(spec, before, "clusterIPs");
        } else if spec.get("clusterIPs") == before.get("clusterIPs")
            && spec.get("clusterIP") != before.get("clusterIP")
        {
            let address = json!([spec.get("clusterIP")]);
            spec.insert("clusterIPs".to_owned(), address);
        }
    }
    let has_ports = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    let kind_before = before
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if has_ports(kind_before) && has_ports(text(spec, "type")) {
        keep_node_ports(spec, before);
        let is_set = |port: Option<&Value>| port.is_some_and(|port| *port != json!(0));
        if !is_set(
            spec.get("healthCheckNodePort")
                .filter(|port| !port.is_null()),
        ) {
            spec.remove("healthCheckNodePort");
            copy(spec, before, "healthCheckNodePort");
        }
    }
}

fn keep_node_ports(spec: &mut Map<String, Value>, before: &Value) {
    let known = before.get("ports").and_then(Value::as_array);
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let is_set = port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) != 0;
        let same = |p: &&Value| p["port"] == port["port"] && p["protocol"] == port["protocol"];
        if !is_set
            && let Some(found) = known.and_then(|known| known.iter().find(same))
            && let Some(number) = found.get("nodePort").cloned()
        {
            port["nodePort"] = number;
        }
    }
}

fn copy(into: &mut Map<String, Value>, from: &Value, member: &str) {
    if let Some(value) = from.get(member) {
        into.insert(member.to_owned(), value.clone());
    }
}

fn text<'a>(map: &'a Map<String, Value>, member: &str) -> &'a str {
    map.get(member).and_then(Value::as_str).unwrap_or_default()
}
