//! Defaults of services.

use serde_json::{Map, Value, json};

use crate::members::object_mut;

/// Removes the settings of an affinity that the service lacks and the policy of an external name, and
/// sets the policy of a service with external addresses.
///
/// Upstream: `SetDefaults_Service`, besides the table; `defaultOnReadInternalTrafficPolicy`.
pub(super) fn set_defaults(service: &mut Value) {
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if text(spec, "sessionAffinity") != "ClientIP" {
        spec.remove("sessionAffinityConfig");
    }
    if text(spec, "type") == "ExternalName" {
        spec.remove("internalTrafficPolicy");
    }
    let policy = "externalTrafficPolicy";
    let is_unset = spec.get(policy).is_none_or(|it| it.is_null() || it == "");
    if is_accessible(spec) && is_unset {
        spec.insert(policy.to_owned(), json!("Cluster"));
    }
}

/// Returns true for a service with a cluster IP, which may be none.
fn needs_address(spec: &Map<String, Value>) -> bool {
    text(spec, "type") != "ExternalName"
}

fn needs_node_ports(spec: &Map<String, Value>) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

fn needs_health_check(spec: &Map<String, Value>) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Upstream: `ExternallyAccessible`.
fn is_accessible(spec: &Map<String, Value>) -> bool {
    needs_node_ports(spec)
        || text(spec, "type") == "ClusterIP" && !texts(spec, "externalIPs").is_empty()
}

/// Copies allocated values of the stored service that the request omits, and completes the
/// addresses.
///
/// Upstream: `patchAllocatedValues`, `normalizeClusterIPs`.
pub(super) fn keep_allocated(spec: &mut Map<String, Value>, old: &Map<String, Value>) {
    if needs_address(old) && needs_address(spec) {
        if text(spec, "clusterIP").is_empty() {
            copy(spec, old, "clusterIP");
        }
        if texts(spec, "clusterIPs").is_empty() {
            copy(spec, old, "clusterIPs");
        }
    }
    if needs_node_ports(old) && needs_node_ports(spec) {
        keep_node_ports(spec, old);
    }
    let is_set = |port: Option<&Value>| port.is_some_and(|port| !port.is_null() && *port != 0);
    if needs_health_check(old)
        && needs_health_check(spec)
        && !is_set(spec.get("healthCheckNodePort"))
    {
        copy(spec, old, "healthCheckNodePort");
    }
    let is_same = text(spec, "clusterIP") == text(old, "clusterIP");
    let are_same = texts(spec, "clusterIPs") == texts(old, "clusterIPs");
    if is_same && texts(spec, "clusterIPs").is_empty() {
        copy(spec, old, "clusterIPs");
    } else if !is_same && are_same {
        let address = text(spec, "clusterIP").to_owned();
        if address.is_empty() {
            spec.remove("clusterIPs");
        } else {
            spec.insert("clusterIPs".to_owned(), json!([address]));
        }
    }
}

/// Completes the node ports by the names of ports, with numbers that no port of the request has.
fn keep_node_ports(spec: &mut Map<String, Value>, old: &Map<String, Value>) {
    let number = |port: &Value| port.get("nodePort").and_then(Value::as_i64).unwrap_or(0);
    let list = |spec: &Map<String, Value>| spec.get("ports").and_then(Value::as_array).cloned();
    let known = list(old).unwrap_or_default();
    let used: Vec<i64> = list(spec).unwrap_or_default().iter().map(number).collect();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter(|port| number(port) == 0) {
        let found = known
            .iter()
            .rev()
            .find(|it| it.get("name") == port.get("name"));
        let found = found.map_or(0, number);
        if found != 0 && !used.contains(&found) {
            port["nodePort"] = json!(found);
        }
    }
}

/// Removes fields of a service that its new type doesn't need, unless the request changes them.
///
/// Upstream: `dropTypeDependentFields`.
pub(super) fn drop_unneeded(service: &mut Value, old: &Value) {
    let both = [&*service, old].map(|it| it.get("spec").and_then(Value::as_object).cloned());
    let [Some(new), Some(old)] = both else { return };
    let spec = object_mut(service, "spec");
    let are_same = |member: &str| new.get(member) == old.get(member);
    let turns = |needs: fn(&Map<String, Value>) -> bool| needs(&old) && !needs(&new);
    let mut drop_if_same = |turns: bool, members: &[&str]| {
        if turns && members.iter().all(|member| are_same(member)) {
            spec.retain(|member, _| !members.contains(&member.as_str()));
        }
    };
    drop_if_same(turns(needs_address), &["clusterIP", "clusterIPs"]);
    drop_if_same(turns(needs_address), &["ipFamilies"]);
    drop_if_same(turns(needs_address), &["ipFamilyPolicy"]);
    drop_if_same(turns(needs_health_check), &["healthCheckNodePort"]);
    let is_balanced = |spec: &Map<String, Value>| text(spec, "type") == "LoadBalancer";
    drop_if_same(turns(is_balanced), &["allocateLoadBalancerNodePorts"]);
    drop_if_same(turns(is_balanced), &["loadBalancerClass"]);
    drop_if_same(turns(is_accessible), &["externalTrafficPolicy"]);
    if turns(needs_node_ports) {
        let numbers = |spec: &Map<String, Value>| -> Vec<Value> {
            let ports = spec.get("ports").and_then(Value::as_array);
            let numbers = ports
                .into_iter()
                .flatten()
                .filter_map(|port| port.get("nodePort"));
            numbers.cloned().collect()
        };
        let known = numbers(&old);
        if numbers(&new).iter().all(|number| known.contains(number)) {
            let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
                port.remove("nodePort");
            }
        }
    }
    if !is_balanced(&new) {
        object_mut(service, "status").insert("loadBalancer".to_owned(), json!({}));
    }
}

fn copy(into: &mut Map<String, Value>, from: &Map<String, Value>, member: &str) {
    if let Some(value) = from.get(member) {
        into.insert(member.to_owned(), value.clone());
    }
}

pub(super) fn text<'a>(map: &'a Map<String, Value>, member: &str) -> &'a str {
    map.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the texts of a list.
pub(super) fn texts<'a>(map: &'a Map<String, Value>, member: &str) -> Vec<&'a str> {
    let list = map.get(member).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
