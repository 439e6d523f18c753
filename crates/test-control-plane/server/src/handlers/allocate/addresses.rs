//! Addresses of services.

use std::net::Ipv4Addr;

use kube_test_control_plane_api::members::text;
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_api::status::FieldError;
use serde_json::{Value, json};

use super::refusal::Refusal;
use crate::state::{Allocations, Reads, Writes};

/// Allocates the address of a new service, or of one that was an alias before. Others keep theirs.
///
/// Upstream: `allocClusterIPs`
pub(super) fn allocate(
    writes: &Writes,
    allocations: &mut Allocations,
    key: &Key,
    (spec, old): (&mut Value, Option<&Value>),
    dry_run: bool,
) -> Result<(), Refusal> {
    let is_alias = |spec: &Value| text(spec, "type") == "ExternalName";
    if is_alias(spec) || old.is_some_and(|old| !is_alias(old)) {
        return Ok(());
    }
    let range = writes.service_range;
    let wanted = text(spec, "clusterIP");
    if wanted.is_empty() {
        let free = if dry_run {
            Some(range.network())
        } else {
            free_address(writes, allocations, key)
        };
        let free = free.ok_or_else(|| {
            let name = &key.name;
            let why =
                format!("failed to allocate a serviceIP for Service \"{name}\": range is full");
            Refusal::Internal(why)
        })?;
        spec["clusterIP"] = json!(free.to_string());
        spec["clusterIPs"] = json!([free.to_string()]);
        return Ok(());
    }
    let Ok(address) = wanted.parse::<Ipv4Addr>() else {
        return Ok(());
    };
    let why = match range.contains(address) {
        false if dry_run => format!(
            "the provided IP ({address}) is not in the valid range. The range of valid IPs is \
             {range}"
        ),
        false => "the provided network does not match the current range".to_owned(),
        true if dry_run => return Ok(()),
        true if is_taken(&writes.reads, allocations, key, address) => {
            "provided IP is already allocated".to_owned()
        }
        true => {
            allocations.addresses.insert(address, key.clone());
            return Ok(());
        }
    };
    let detail = format!("failed to allocate IP {address}: {why}");
    let value = json!([wanted]);
    let error = FieldError::invalid("spec.clusterIPs", &value, &detail);
    Err(Refusal::Field(error))
}

fn free_address(writes: &Writes, allocations: &mut Allocations, key: &Key) -> Option<Ipv4Addr> {
    let mut all = writes.service_range.candidates(allocations.next_address);
    allocations.next_address = allocations.next_address.wrapping_add(1);
    let free = all.find(|it| !is_taken(&writes.reads, allocations, key, *it))?;
    allocations.addresses.insert(free, key.clone());
    Some(free)
}

/// Returns true if another service than `own` still holds an address.
fn is_taken(reads: &Reads, allocations: &Allocations, own: &Key, address: Ipv4Addr) -> bool {
    let holder = allocations.addresses.get(&address);
    let holder = holder.filter(|holder| *holder != own);
    let Some(holder) = holder else {
        return false;
    };
    if allocations.is_reserved(holder) {
        return true;
    }
    reads.store.get(holder).is_some_and(|service| {
        service.value().pointer("/spec/clusterIP") == Some(&json!(address.to_string()))
    })
}
