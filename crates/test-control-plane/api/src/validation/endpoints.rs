//! Rules of endpoints.

use std::net::{IpAddr, Ipv6Addr};

use super::place::{Errors, Place};
use super::{names, rules};

/// Upstream: `validateEndpointSubsets`.
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
        endpoint_port(&port, needs_name, errors);
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

/// Upstream: `validateEndpointPort`.
fn endpoint_port(port: &Place<'_>, needs_name: bool, errors: &mut Errors) {
    let name = port.member("name");
    if !name.is_empty() {
        name.invalid_for(names::dns_label(name.text()), errors);
    } else if needs_name {
        errors.push(name.required(""));
    }
    rules::check("EndpointPort", port, errors);
}
