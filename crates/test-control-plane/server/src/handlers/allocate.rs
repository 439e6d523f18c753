//! Allocation of service addresses and ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::MutexGuard;

use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::members::object_mut;
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::status::{ApiError, ApiResult, FieldError};
use serde_json::{Map, Value, json};

use crate::state::{Allocations, Reads, Writes};

/// First address of the service range.
const RANGE_START: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 0);

/// Prefix length of the service range.
const RANGE_BITS: u32 = 12;

/// Number of addresses at the start of the range that are reserved for explicit requests.
const RESERVED: u32 = 256;

/// The range of node ports.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

const TAKEN: &str = "provided port is already allocated";

/// Allocates missing addresses and ports to a service before it is stored. The guard blocks
/// other allocations until the service is stored.
///
/// # Errors
///
/// 422 if another service has a requested address or port, or if it is out of range. 500 if all
/// node ports are taken.
pub(crate) fn allocate<'a>(
    writes: &'a Writes,
    kind: &Kind,
    key: &Key,
    draft: &mut Draft,
    old: Option<&Draft>,
    dry_run: bool,
) -> ApiResult<Option<MutexGuard<'a, Allocations>>> {
    if &*kind.storage != "services" {
        return Ok(None);
    }
    let spec = object_mut(&mut draft.value, "spec");
    let of = |member: &str| spec.get(member).and_then(Value::as_str).unwrap_or_default();
    let (service_type, address) = (of("type").to_owned(), of("clusterIP").to_owned());
    if service_type == "ExternalName" {
        return Ok(None);
    }
    // An address doesn't change: the validation of the update reports that.
    let had_address = old.is_some_and(|old| old.value["spec"]["type"] != "ExternalName");
    let mut errors = Vec::new();
    let mut guard = writes.lock_allocations();
    let allocations = &mut *guard;
    if address.is_empty() {
        let address = free_address(&writes.reads, allocations, key).to_string();
        spec.insert("clusterIP".to_owned(), json!(address));
        spec.insert("clusterIPs".to_owned(), json!([address]));
    } else if let Ok(address) = address.parse::<Ipv4Addr>()
        && !had_address
    {
        errors.extend(claim_address(&writes.reads, allocations, key, address));
    }
    let needs_ports = matches!(&*service_type, "NodePort" | "LoadBalancer");
    let opens_ports = needs_ports
        && (service_type == "NodePort"
            || spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false)));
    let mut own = node_ports(spec);
    let mut claimed: BTreeMap<i64, i64> = BTreeMap::new();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for (i, port) in ports.into_iter().flatten().enumerate() {
        let wanted = port.get("nodePort").and_then(Value::as_i64).unwrap_or(0);
        if !needs_ports {
            continue;
        }
        if wanted != 0 {
            let field = format!("spec.ports[{i}].nodePort");
            // Several protocols of one port may share a number.
            let number = port["port"].as_i64().unwrap_or(0);
            if *claimed.entry(wanted).or_insert(number) != number {
                errors.push(FieldError::invalid(field, &json!(wanted), TAKEN));
            } else if dry_run && !NODE_PORTS.contains(&wanted) {
                // Dry runs don't check the range.
            } else {
                errors.extend(claim_port(&writes.reads, allocations, key, wanted, field));
            }
        } else if opens_ports {
            let free = free_port(&writes.reads, allocations, key, &mut own);
            port["nodePort"] = json!(free.ok_or_else(|| range_is_full("a nodePort"))?);
        }
    }
    let is_local = spec.get("externalTrafficPolicy") == Some(&json!("Local"));
    if service_type == "LoadBalancer" && is_local && !spec.contains_key("healthCheckNodePort") {
        let free = free_port(&writes.reads, allocations, key, &mut own);
        let free = free.ok_or_else(|| range_is_full("a HealthCheck NodePort 0"))?;
        spec.insert("healthCheckNodePort".to_owned(), json!(free));
    }
    if errors.is_empty() {
        return Ok(Some(guard));
    }
    Err(ApiError::invalid(kind, &key.name, &errors))
}

fn free_address(reads: &Reads, allocations: &mut Allocations, key: &Key) -> Ipv4Addr {
    let size = 1 << (32 - RANGE_BITS);
    loop {
        // The last address of the range is its broadcast address.
        let offset = RESERVED + allocations.next_address % (size - RESERVED - 1);
        allocations.next_address = allocations.next_address.wrapping_add(1);
        let number = u32::from(RANGE_START) + offset;
        let address = Ipv4Addr::from(number);
        if !has_address(reads, allocations.addresses.get(&number), key, address) {
            allocations.addresses.insert(number, key.clone());
            return address;
        }
    }
}

fn claim_address(
    reads: &Reads,
    allocations: &mut Allocations,
    key: &Key,
    address: Ipv4Addr,
) -> Option<FieldError> {
    let number = u32::from(address);
    let why = if (number ^ u32::from(RANGE_START)) >> (32 - RANGE_BITS) != 0 {
        format!(
            "the provided IP ({address}) is not in the valid range. The range of valid IPs is \
             {RANGE_START}/{RANGE_BITS}"
        )
    } else if has_address(reads, allocations.addresses.get(&number), key, address) {
        "provided IP is already allocated".to_owned()
    } else {
        allocations.addresses.insert(number, key.clone());
        return None;
    };
    let detail = format!("failed to allocate IP {address}: {why}");
    let value = json!([address.to_string()]);
    Some(FieldError::invalid("spec.clusterIPs", &value, &detail))
}

/// Reports whether another service than `own` still holds the address allocated to `holder`.
fn has_address(reads: &Reads, holder: Option<&Key>, own: &Key, address: Ipv4Addr) -> bool {
    let Some(holder) = holder.filter(|holder| *holder != own) else {
        return false;
    };
    reads.store.get(holder).is_some_and(|service| {
        service.value().pointer("/spec/clusterIP") == Some(&json!(address.to_string()))
    })
}

/// Returns a free port, which becomes one of the service's `own`.
fn free_port(
    reads: &Reads,
    allocations: &mut Allocations,
    key: &Key,
    own: &mut BTreeSet<i64>,
) -> Option<i64> {
    let size = NODE_PORTS.end() - NODE_PORTS.start() + 1;
    let mut held: BTreeMap<Key, BTreeSet<i64>> = BTreeMap::new();
    for _ in 0..size {
        let port = NODE_PORTS.start() + allocations.next_port % size;
        allocations.next_port += 1;
        if let Some(holder) = allocations.ports.get(&port).filter(|holder| *holder != key) {
            let ports = held.entry(holder.clone());
            if ports
                .or_insert_with(|| ports_of(reads, holder))
                .contains(&port)
            {
                continue;
            }
        }
        if own.insert(port) {
            allocations.ports.insert(port, key.clone());
            return Some(port);
        }
    }
    None
}

fn claim_port(
    reads: &Reads,
    allocations: &mut Allocations,
    key: &Key,
    port: i64,
    field: String,
) -> Option<FieldError> {
    let holder = allocations.ports.get(&port).filter(|holder| *holder != key);
    let why = if !NODE_PORTS.contains(&port) {
        format!(
            "provided port is not in the valid range. The range of valid ports is {}-{}",
            NODE_PORTS.start(),
            NODE_PORTS.end()
        )
    } else if holder.is_some_and(|holder| ports_of(reads, holder).contains(&port)) {
        TAKEN.to_owned()
    } else {
        allocations.ports.insert(port, key.clone());
        return None;
    };
    Some(FieldError::invalid(field, &json!(port), &why))
}

/// Returns the node ports of a service; empty if it no longer exists.
fn ports_of(reads: &Reads, service: &Key) -> BTreeSet<i64> {
    let service = reads.store.get(service).map(|service| service.value());
    let spec = service
        .as_ref()
        .and_then(|service| service["spec"].as_object());
    spec.map(node_ports).unwrap_or_default()
}

/// Returns the node ports in a service's spec.
fn node_ports(spec: &Map<String, Value>) -> BTreeSet<i64> {
    let ports = spec.get("ports").and_then(Value::as_array);
    let ports = ports.into_iter().flatten().map(|port| &port["nodePort"]);
    let all = ports.chain(spec.get("healthCheckNodePort"));
    all.filter_map(Value::as_i64).collect()
}

fn range_is_full(what: &str) -> ApiError {
    ApiError::internal_error(&format!("failed to allocate {what}: range is full"))
}
