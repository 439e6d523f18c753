//! Rules of the status of claims of devices.

use std::collections::BTreeSet;

use kube_apimachinery::json::to_go_string;
use serde_json::Value;

use crate::go::ip;
use crate::members::{list_at, text};
use crate::status::FieldError;
use crate::validation::engine::{Errors, Place};

/// Maximum number of consumers of a claim.
const RESERVATIONS_MAX: i64 = 256;

/// Checks the consumers of a claim.
pub(in crate::validation) fn claim_reservations(claim: &Place<'_>, errors: &mut Errors) {
    let reserved = claim.member("status.reservedFor");
    let found = reserved.values().count();
    if i64::try_from(found).is_ok_and(|found| found > RESERVATIONS_MAX) {
        errors.push(FieldError::too_many(
            reserved.path(),
            found,
            RESERVATIONS_MAX,
        ));
        return;
    }
    for consumer in reserved.elements() {
        consumer.check("ResourceClaimConsumerReference", errors);
    }
    super::repeated(&reserved, &["uid"], "", errors);
}

/// Checks that only an allocated claim has consumers, and that a deleted one gets no more.
pub(in crate::validation) fn claim_status(claim: &Place<'_>, errors: &mut Errors) {
    let reserved = claim.member("status.reservedFor");
    if reserved.is_empty() {
        return;
    }
    let old: &[Value] = reserved
        .old
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice);
    let is_new = |consumer: Place<'_>| !old.contains(consumer.value);
    if !claim.member("status.allocation").is_present() {
        errors.push(reserved.forbidden("may not be specified when `allocated` is not set"));
    } else if claim.member("metadata.deletionTimestamp").is_present()
        && reserved.values().any(is_new)
    {
        let detail = "new entries may not be added while `deallocationRequested` or \
                      `deletionTimestamp` are set";
        errors.push(reserved.forbidden(detail));
    }
}

/// Checks a new allocation; a stored one must not change.
pub(in crate::validation) fn claim_allocation(allocation: &Place<'_>, errors: &mut Errors) {
    if !allocation.is_present() {
        return;
    }
    match allocation.old {
        Some(old) if !old.is_null() => {
            if allocation.is_changed() {
                errors.push(allocation.invalid("field is immutable"));
            }
        }
        _ => allocation.check("AllocationResult", errors),
    }
}

/// Rejects the status of a device that isn't allocated.
pub(in crate::validation) fn allocated_device(device: &Place<'_>, errors: &mut Errors) {
    let own = device_id(device.value);
    let claim = device.up().and_then(Place::up);
    let results = claim.map(|claim| list_at(claim.value, "/status/allocation/devices/results"));
    let mut results = results.into_iter().flatten();
    if !results.any(|result| device_id(result) == own) {
        let detail = "must be an allocated device in the claim";
        errors.push(FieldError::invalid_text(
            device.path(),
            &printed(&own),
            detail,
        ));
    }
}

/// Rejects a second status of a device.
pub(in crate::validation) fn repeated_devices(devices: &Place<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for device in devices.elements() {
        let id = device_id(device.value);
        if !seen.insert(id) {
            errors.push(FieldError::duplicate_text(device.path(), &printed(&id)));
        }
    }
}

/// The driver, the pool, the device and the share.
type DeviceId<'a> = [&'a str; 4];

fn device_id(device: &Value) -> DeviceId<'_> {
    ["driver", "pool", "device", "shareID"].map(|part| text(device, part))
}

fn printed(id: &DeviceId<'_>) -> String {
    let [driver, pool, name, share] = id.map(|part| to_go_string(&Value::from(part)));
    format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{name},\"ShareID\":{share}}}")
}

/// Checks an address of a device with the length of its network.
///
/// Upstream: `IsValidInterfaceAddress`.
pub(in crate::validation) fn interface_address(address: &Place<'_>, errors: &mut Errors) {
    address.invalid_for(ip::interface_errors(address.text()), errors);
}
