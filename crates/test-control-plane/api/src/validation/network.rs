//! Rules of services and endpoints.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use super::place::{Errors, Place};
use super::{names, rules};
use crate::status::FieldError;

/// Validates the ports, whose names and numbers are unique.
pub(super) fn service_ports(spec: &Place<'_>, errors: &mut Errors) {
    let is_headless = spec.text_of("clusterIP") == "None";
    let mut seen_names = BTreeSet::new();
    let mut seen_numbers = BTreeSet::new();
    let ports = spec.member("ports");
    let needs_name = ports.values().count() > 1;
    for port in ports.elements() {
        let name = port.member("name");
        port_name(&name, needs_name, errors);
        if !name.is_empty() && !seen_names.insert(port.text_of("name")) {
            errors.push(name.duplicate());
        }
        rules::check("ServicePort", &port, errors);
        let number = port.member("port").number();
        let target = port.member("targetPort");
        if is_headless && target.value.is_number() && target.number() != number {
            // Headless services may have another target port, because nothing translates it.
            continue;
        }
        let protocol = port.text_of("protocol");
        if !seen_numbers.insert((protocol, number)) {
            errors.push(FieldError::duplicate_text(
                port.path(),
                &format!(
                    "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":\
                     {number},\"TargetPort\":0,\"NodePort\":0}}"
                ),
            ));
        }
    }
}

fn port_name(name: &Place<'_>, is_needed: bool, errors: &mut Errors) {
    if !name.is_empty() {
        name.invalid_for(names::dns_label(name.text()), errors);
    } else if is_needed {
        errors.push(name.required(""));
    }
}

/// Rejects changes of the first cluster IP and IP family. Services of type `ExternalName` are exempt.
pub(super) fn service_update(spec: &Place<'_>, errors: &mut Errors) {
    let Some(old) = spec.old else { return };
    if spec.value["type"] == "ExternalName" || old["type"] == "ExternalName" {
        return;
    }
    for member in ["clusterIPs", "ipFamilies"] {
        let (now, before) = (spec.value[member].get(0), old[member].get(0));
        if before.is_some() && now.is_some() && now != before {
            errors.push(FieldError::invalid(
                format!("{}[0]", spec.member(member).path()),
                &spec.value[member],
                "may not change once set",
            ));
        }
    }
}

/// Upstream: `validateEndpointSubsets`, `validateEndpointPort`.
pub(super) fn endpoint_subset(subset: &Place<'_>, errors: &mut Errors) {
    let members = ["addresses", "notReadyAddresses"].map(|member| subset.member(member));
    if members.iter().all(Place::is_empty) {
        let detail = "must specify `addresses` or `notReadyAddresses`";
        errors.push(subset.required(detail));
    }
    for address in members.iter().flat_map(Place::elements) {
        rules::check("EndpointAddress", &address, errors);
    }
    let ports = subset.member("ports");
    let needs_name = ports.values().count() > 1;
    for port in ports.elements() {
        port_name(&port.member("name"), needs_name, errors);
        rules::check("EndpointPort", &port, errors);
    }
}

/// Reports why no endpoint can have this address.
///
/// Upstream: `ValidateEndpointIP`.
pub(super) fn endpoint_ip(ip: &Place<'_>, errors: &mut Errors) {
    let text = ip.text();
    let Ok(parsed) = text.parse::<IpAddr>() else {
        ip.invalid_for(["must be a valid IP address"], errors);
        return;
    };
    let in_range = |ip: Ipv6Addr, prefix: u16, mask: u16| ip.segments()[0] & mask == prefix;
    let (local, multicast) = match parsed {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (in_range(ip, 0xfe80, 0xffc0), in_range(ip, 0xff02, 0xffff)),
    };
    let mut found = Vec::new();
    if parsed.is_unspecified() {
        found.push(format!("may not be unspecified ({text})"));
    }
    for (is_so, range) in [
        (
            parsed.is_loopback(),
            "loopback range (127.0.0.0/8, ::1/128)",
        ),
        (local, "link-local range (169.254.0.0/16, fe80::/10)"),
        (
            multicast,
            "link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    ] {
        if is_so {
            found.push(format!("may not be in the {range}"));
        }
    }
    ip.invalid_for(found, errors);
}
