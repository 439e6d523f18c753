//! Desired slices of a service, and the writes that produce them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use kube_test_control_plane_api::members::{list_at, text, text_at};
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_api::object::Object;
use serde_json::{Map, Value, json};

use crate::dependents::reference;
use crate::replica_set_controller::status::readiness;

/// A change of a service's slices.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SliceChange {
    Create(Value),
    Replace(Key, Box<str>, Value),
    Delete(Key, Box<str>),
}

/// The label with the name of a slice's service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label with the controller of a slice.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The label of the slices of a service without an address.
const HEADLESS: &str = "service.kubernetes.io/headless";

/// Limit of endpoints in a slice, as in upstream.
const ENDPOINTS_MAX: usize = 100;

/// The zone of a node.
pub(super) type Zone<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the changes of a service's slices. Slices that exist are used again, in the order of
/// their names.
///
/// Upstream: `reconcileByAddressType`, without its economy of writes.
pub(super) fn changes(
    service: &Object,
    pods: &[Value],
    found: Vec<(Arc<Object>, Value)>,
    zone: Zone<'_>,
) -> Vec<SliceChange> {
    let value = service.value();
    let mut changes = Vec::new();
    let mut unused = found;
    for family in families(&value) {
        for (ports, endpoints) in wanted(&value, pods, family, zone) {
            let slice = new_slice(service, &value, family, &ports, &endpoints);
            let of_family = |(_, it): &(_, Value)| text(it, "addressType") == family;
            let known = unused.iter().position(of_family).map(|i| unused.remove(i));
            let Some((object, mut known)) = known else {
                changes.push(SliceChange::Create(slice));
                continue;
            };
            let is_same = ["endpoints", "ports"]
                .iter()
                .all(|it| known[*it] == slice[*it])
                && known.pointer("/metadata/labels") == slice.pointer("/metadata/labels");
            if !is_same {
                known["endpoints"] = slice["endpoints"].clone();
                known["ports"] = slice["ports"].clone();
                known["metadata"]["labels"] = slice["metadata"]["labels"].clone();
                let (key, uid) = (object.key.clone(), object.uid.clone());
                changes.push(SliceChange::Replace(key, uid, known));
            }
        }
    }
    let delete = |(object, _): (Arc<Object>, Value)| {
        SliceChange::Delete(object.key.clone(), object.uid.clone())
    };
    changes.extend(unused.into_iter().map(delete));
    changes
}

fn families(service: &Value) -> Vec<&str> {
    let families = list_at(service, "/spec/ipFamilies").filter_map(Value::as_str);
    let families: Vec<&str> = families.collect();
    if families.is_empty() {
        vec!["IPv4"]
    } else {
        families
    }
}

/// Returns ports and endpoints of each slice. A service without endpoints has one empty slice.
fn wanted(service: &Value, pods: &[Value], family: &str, zone: Zone<'_>) -> Vec<(Value, Value)> {
    let mut by_ports: BTreeMap<String, (Value, Vec<Value>)> = BTreeMap::new();
    for pod in pods {
        let is_over = matches!(text_at(pod, "/status/phase"), "Succeeded" | "Failed");
        let addresses = addresses(pod, family);
        if is_over || addresses.is_empty() {
            continue;
        }
        let ports = ports(service, pod);
        let group = by_ports.entry(ports.to_string());
        let (_, endpoints) = group.or_insert((ports, Vec::new()));
        endpoints.push(endpoint(service, pod, &addresses, zone));
    }
    if by_ports.is_empty() {
        return vec![(json!([]), json!([]))];
    }
    let slices = by_ports.into_values().flat_map(|(ports, endpoints)| {
        let chunks = endpoints.chunks(ENDPOINTS_MAX);
        let slices = chunks.map(|chunk| (ports.clone(), json!(chunk)));
        slices.collect::<Vec<_>>()
    });
    slices.collect()
}

fn addresses<'a>(pod: &'a Value, family: &str) -> Vec<&'a str> {
    let addresses = list_at(pod, "/status/podIPs").map(|it| text(it, "ip"));
    let is_of_family = |address: &&str| match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => family == "IPv4",
        Ok(IpAddr::V6(_)) => family == "IPv6",
        Err(_) => false,
    };
    addresses.filter(is_of_family).take(1).collect()
}

/// Upstream: `podToEndpoint`
fn endpoint(service: &Value, pod: &Value, addresses: &[&str], zone: Zone<'_>) -> Value {
    let publishes_all = service.pointer("/spec/publishNotReadyAddresses") == Some(&json!(true));
    let serving = readiness(pod).ready;
    let terminating = !text_at(pod, "/metadata/deletionTimestamp").is_empty();
    let [namespace, name, uid] =
        ["namespace", "name", "uid"].map(|it| text_at(pod, &format!("/metadata/{it}")).to_owned());
    let mut endpoint = json!({
        "addresses": addresses,
        "conditions": {
            "ready": publishes_all || serving && !terminating,
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": {"kind": "Pod", "namespace": namespace, "name": name, "uid": uid},
    });
    let node = text_at(pod, "/spec/nodeName");
    if !node.is_empty() {
        endpoint["nodeName"] = json!(node);
        if let Some(zone) = zone(node) {
            endpoint["zone"] = json!(zone);
        }
    }
    let [host, domain] = ["hostname", "subdomain"].map(|it| text_at(pod, &format!("/spec/{it}")));
    if !host.is_empty() && domain == text_at(service, "/metadata/name") {
        endpoint["hostname"] = json!(host);
    }
    endpoint
}

/// Returns the ports of a service at a pod. A port whose name the pod lacks is left out.
///
/// Upstream: `getEndpointPorts`
fn ports(service: &Value, pod: &Value) -> Value {
    let ports = list_at(service, "/spec/ports").filter_map(|port| {
        let protocol = text(port, "protocol");
        let number = match &port["targetPort"] {
            Value::String(name) => named_port(pod, name, protocol)?,
            Value::Number(number) if number.as_i64() != Some(0) => json!(number),
            _ => port["port"].clone(),
        };
        let mut found = json!({
            "name": text(port, "name"),
            "port": number,
            "protocol": protocol,
        });
        if let Some(app) = port.get("appProtocol") {
            found["appProtocol"] = app.clone();
        }
        Some(found)
    });
    ports.collect()
}

/// Upstream: `FindPort`
fn named_port(pod: &Value, name: &str, protocol: &str) -> Option<Value> {
    let containers = list_at(pod, "/spec/containers");
    let mut ports = containers.flat_map(|container| list_at(container, "/ports"));
    let port = ports.find(|it| text(it, "name") == name && text(it, "protocol") == protocol)?;
    port.get("containerPort").cloned()
}

fn new_slice(
    service: &Object,
    value: &Value,
    family: &str,
    ports: &Value,
    endpoints: &Value,
) -> Value {
    let labels = value.pointer("/metadata/labels").and_then(Value::as_object);
    let mut labels: Map<String, Value> = labels.cloned().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), json!(&*service.key.name));
    let controller = json!("endpointslice-controller.k8s.io");
    labels.insert(MANAGED_BY.to_owned(), controller);
    labels.remove(HEADLESS);
    if text_at(value, "/spec/clusterIP") == "None" {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    json!({
        "metadata": {
            "generateName": format!("{}-", service.key.name),
            "labels": labels,
            "ownerReferences": [reference("v1", "Service", service)],
        },
        "addressType": family,
        "endpoints": stored_list(endpoints),
        "ports": stored_list(ports),
    })
}

/// Returns a list as the API server stores it: null instead of an empty one.
fn stored_list(list: &Value) -> Value {
    let is_empty = list.as_array().is_none_or(Vec::is_empty);
    if is_empty { Value::Null } else { list.clone() }
}
