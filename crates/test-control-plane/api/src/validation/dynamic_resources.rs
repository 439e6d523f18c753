//! Rules of devices and of claims of them.

mod devices;
mod status;

use std::collections::BTreeSet;

use serde_json::{Value, json};

pub(super) use devices::{
    binding_conditions, counter_names, device_attributes, device_capacities, device_nodes,
    device_size, slice_devices, slice_nodes,
};
pub(super) use status::{
    allocated_device, claim_allocation, claim_reservations, claim_status, interface_address,
    repeated_devices,
};

use super::engine::{Errors, Place};
use super::{resource_names, storage};
use crate::go::names;
use crate::members::{list, text};
use crate::status::FieldError;

/// Maximum length of the name of a pool, in bytes.
const POOL_NAME_MAX: usize = 253;

/// Maximum length of the name of an attribute without its domain, in bytes.
const ID_MAX: usize = 32;

/// Maximum size of parameters, in bytes.
const PARAMETERS_MAX: usize = 10 * 1024;

pub(super) fn extended_resource(name: &Place<'_>, errors: &mut Errors) {
    if !resource_names::is_extended(name.text()) {
        errors.push(name.invalid("must be a valid extended resource name"));
    }
}

/// Reports each element that has the same text as an earlier one, or that a field of it has, unless
/// the list has too many elements.
pub(super) fn repeated(list: &Place<'_>, args: &[&str], _: &str, errors: &mut Errors) {
    let max = args.get(1).and_then(|max| max.parse().ok());
    if max.is_some_and(|max: usize| list.values().count() > max) {
        return;
    }
    let mut seen = BTreeSet::new();
    for element in list.elements() {
        let key = match args {
            [".", ..] | [] => element.text(),
            [member, ..] => element.text_of(member),
        };
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(element.path(), &json!(key)));
        }
    }
}

/// Returns the requests of the claim around a value.
fn requests<'a>(place: &Place<'a>) -> impl Iterator<Item = &'a Value> {
    let mut root = *place;
    while let Some(up) = root.up() {
        root = *up;
    }
    let devices = ["/spec/spec/devices", "/spec/devices"];
    let devices = devices.iter().find_map(|it| root.value.pointer(it));
    devices
        .into_iter()
        .flat_map(|devices| list(devices, "requests"))
}

/// Checks a reference to a request of the claim, or to one of its alternatives.
///
/// Upstream: `validateRequestNameRef`.
pub(super) fn request_reference(name: &Place<'_>, errors: &mut Errors) {
    let detail = "must be the name of a request in the claim or the name of a request and a \
                  subrequest separated by '/'";
    let segments: Vec<&str> = name.text().split('/').collect();
    if segments.len() <= 2 {
        for segment in &segments {
            let wrong = names::dns_label(segment).into_iter();
            errors.extend(wrong.map(|why| name.invalid_as(&json!(segment), why)));
        }
        let is_known = requests(name).any(|request| {
            let mut inner = list(request, "firstAvailable");
            text(request, "name") == segments[0]
                && segments
                    .get(1)
                    .is_none_or(|wanted| inner.any(|it| text(it, "name") == *wanted))
        });
        if is_known {
            return;
        }
    }
    errors.push(name.invalid(detail));
}

/// Checks the name of an attribute, which needs a domain.
///
/// Upstream: `validateFullyQualifiedName`.
pub(super) fn qualified_attribute(name: &Place<'_>, errors: &mut Errors) {
    qualified_name(name.text(), &name.path(), errors);
    if !name.text().contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(name.invalid(detail));
    }
}

/// Upstream: `validateQualifiedName`.
fn qualified_name(name: &str, path: &str, errors: &mut Errors) {
    match name.split('/').collect::<Vec<_>>()[..] {
        [id] => identifier(id, path, errors),
        [domain, id] => {
            if domain.is_empty() {
                let detail = "the domain must not be empty";
                errors.push(FieldError::invalid(path, &json!(""), detail));
            } else {
                storage::driver_name_at(domain, path, errors);
            }
            if id.is_empty() {
                let detail = "the name must not be empty";
                errors.push(FieldError::invalid(path, &json!(""), detail));
            } else {
                identifier(id, path, errors);
            }
        }
        _ => {}
    }
}

/// Upstream: `validateCIdentifier`.
fn identifier(id: &str, path: &str, errors: &mut Errors) {
    if id.len() > ID_MAX {
        let detail = format!("may not be more than {ID_MAX} bytes");
        errors.push(FieldError::too_long(path, &detail));
    }
    let wrong = names::c_identifier(id).into_iter();
    errors.extend(wrong.map(|why| FieldError::invalid(path, &json!(id), why)));
}

/// Upstream: `validatePoolName`.
pub(super) fn pool_name(name: &Place<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(name.required(""));
        return;
    }
    name.limited(POOL_NAME_MAX, errors);
    for part in name.text().split('/') {
        let wrong = names::dns_subdomain(part).into_iter();
        errors.extend(wrong.map(|why| name.invalid_as(&json!(part), why)));
    }
}

/// Upstream: `validateUID`.
pub(super) fn share_id(id: &Place<'_>, errors: &mut Errors) {
    let groups: Vec<&str> = id.text().split('-').collect();
    let is_hex = |group: &&str| {
        group
            .bytes()
            .all(|it| it.is_ascii_hexdigit() && !it.is_ascii_uppercase())
    };
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths != [8, 4, 4, 4, 12] || !groups.iter().all(is_hex) {
        let detail = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` \
                      with lowercase hexadecimal characters";
        errors.push(id.invalid(detail));
    }
}

/// Checks the parameters of a driver: a JSON object.
///
/// Upstream: `validateRawExtension`.
pub(super) fn device_parameters(parameters: &Place<'_>, errors: &mut Errors) {
    match parameters.value {
        Value::Null => errors.push(parameters.required("")),
        value if value.to_string().len() > PARAMETERS_MAX => {
            errors.push(parameters.too_long(PARAMETERS_MAX));
        }
        Value::Object(_) => {}
        _ => {
            let detail = "must be a valid JSON object";
            let shown = json!("<value omitted>");
            errors.push(parameters.invalid_as(&shown, detail));
        }
    }
}
