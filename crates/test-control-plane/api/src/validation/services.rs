//! Rules of services, endpoints and slices of endpoints.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::{Value, json};

use super::engine::{Errors, Place, print};
use crate::go::{ip, names};
use crate::members::{list, text};
use crate::status::FieldError;

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

/// Maximum number of zones or nodes in hints.
const HINTS_MAX: usize = 8;

/// Upstream: `isHeadlessService`.
fn is_headless(spec: &Value) -> bool {
    spec.get("clusterIPs")
        .is_some_and(|ips| *ips == json!(["None"]))
}

pub(super) fn topology_annotations(service: &Place<'_>, errors: &mut Errors) {
    let annotations = service.member("metadata.annotations");
    let [hints, mode] = [TOPOLOGY_HINTS, TOPOLOGY_MODE].map(|key| annotations.value.get(key));
    if let (Some(hints), Some(mode)) = (hints, mode)
        && hints != mode
    {
        let field = format!("{}[{TOPOLOGY_MODE}]", annotations.path());
        let detail = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.push(FieldError::invalid(field, mode, &detail));
    }
}

/// Upstream: `validateUpgradeDowngradeClusterIPs`.
pub(super) fn cluster_ips_update(spec: &Place<'_>, errors: &mut Errors) {
    if !is_headless(spec.value) || !spec.old.is_some_and(is_headless) {
        stack_update(spec, "clusterIPs", "clusterIP", errors);
    }
}

/// Upstream: `validateUpgradeDowngradeIPFamilies`.
pub(super) fn ip_families_update(spec: &Place<'_>, errors: &mut Errors) {
    if !is_headless(spec.value) && !spec.old.is_some_and(is_headless) {
        stack_update(spec, "ipFamilies", "ipFamily", errors);
    }
}

/// Checks a change of the addresses or of their families, of which only the second may come and go.
fn stack_update(spec: &Place<'_>, member: &str, noun: &str, errors: &mut Errors) {
    const CHANGED: &str = "may not change once set";
    let [list, ips, policy] = [member, "clusterIPs", "ipFamilyPolicy"].map(|it| spec.member(it));
    let (new, old) = (list.texts(), list.stored_texts());
    let mut refuse = |i: usize, shown: &Place<'_>, detail: &str| {
        let mut error = shown.invalid(detail);
        error.field = format!("{}[{i}]", list.path());
        errors.push(error);
    };
    if new.len() == old.len() {
        let both = new.iter().zip(&old).enumerate();
        for (i, _) in both.filter(|(_, (new, old))| new != old) {
            // All errors about families name the first one.
            let index = if noun == "clusterIP" { i } else { 0 };
            refuse(index, &list, CHANGED);
        }
        return;
    }
    let is_shorter = old.len() > new.len();
    if is_shorter && ips.is_empty() {
        refuse(0, &list, &format!("primary {noun} can not be unset"));
    }
    if !old.is_empty() && !new.is_empty() && new[0] != old[0] {
        refuse(0, &ips, CHANGED);
    }
    if is_shorter && new.len() == 1 && policy.text() != "SingleStack" {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {noun}");
        errors.push(policy.invalid(&detail));
    }
}

pub(super) fn external_name(name: &Place<'_>, errors: &mut Errors) {
    let trimmed = json!(name.text().strip_suffix('.').unwrap_or(name.text()));
    let trimmed = name.instead(&trimmed);
    if trimmed.is_empty() {
        errors.push(name.required(""));
    } else {
        trimmed.invalid_for(names::dns_subdomain(trimmed.text()), errors);
    }
}

/// Checks a list of ports, of which several must have names.
pub(super) fn service_ports(ports: &Place<'_>, errors: &mut Errors) {
    let needs_name = ports.values().count() > 1;
    for port in ports.elements() {
        let name = port.member("name");
        port_name(&name, needs_name, errors);
        let is_same = |other: &Value| text(other, "name") == name.text();
        if !name.is_empty() && port.before().iter().any(is_same) {
            errors.push(name.duplicate());
        }
        port.check("ServicePort", errors);
    }
}

fn port_name(name: &Place<'_>, is_needed: bool, errors: &mut Errors) {
    if !name.is_empty() {
        name.invalid_for(names::dns_label(name.text()), errors);
    } else if is_needed {
        errors.push(name.required(""));
    }
}

/// Rejects an address, unless the stored object has it.
fn new_address(address: &Place<'_>, stored: &[&str], errors: &mut Errors) {
    if !stored.contains(&address.text()) {
        address.invalid_for(ip::errors(address.text()), errors);
    }
}

/// Upstream: `ValidateServiceClusterIPsRelatedFields`.
pub(super) fn cluster_ips(spec: &Place<'_>, errors: &mut Errors) {
    let ips = spec.member("clusterIPs");
    let given = ips.texts();
    match (spec.text_of("clusterIP"), given.first()) {
        ("", None) => {}
        ("", Some(_)) => {
            errors.push(ips.invalid("must be empty when `clusterIP` is not specified"));
        }
        (_, None) => errors.push(ips.required("")),
        (one, Some(first)) if *first != one => {
            errors.push(ips.invalid("first value must match `clusterIP`"));
        }
        _ => {}
    }
    let families = spec.member("ipFamilies");
    spec.check("ServiceSpec/families", errors);
    let stored = ips.stored_texts();
    let before = errors.len();
    for (i, address) in ips.elements().enumerate() {
        if i == 0 && address.text() == "None" {
            if given.len() > 1 {
                errors.push(ips.invalid("'None' must be the first and only value"));
            }
        } else {
            new_address(&address, &stored, errors);
        }
    }
    let has_invalid = errors.len() > before;
    if given.len() > FAMILIES.len() {
        errors.push(ips.invalid("may only hold up to 2 values"));
    }
    if has_invalid {
        return;
    }
    let is_v6 = |text: &str| ip::parse_sloppy(text).is_some_and(|address| address.is_ipv6());
    let has_both = given.iter().any(|it| is_v6(it)) && !given.iter().all(|it| is_v6(it));
    if given.len() > 1 && !has_both {
        errors.push(ips.invalid("may specify no more than one IP for each IP family"));
    }
    if is_headless(spec.value) {
        return;
    }
    for (i, (address, family)) in ips.elements().zip(families.values()).enumerate() {
        let family = family.text();
        if FAMILIES.contains(&family) && (family == "IPv6") != is_v6(address.text()) {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
            address.invalid_for([detail], errors);
        }
    }
}

/// Rejects ports that an earlier one has, first on nodes and then of the service.
pub(super) fn repeated_ports(ports: &Place<'_>, errors: &mut Errors) {
    for port in ports.elements() {
        let node = port.member("nodePort");
        let is_same = |other: &Value| {
            text(other, "protocol") == port.text_of("protocol")
                && other.get("nodePort") == Some(node.value)
        };
        if node.number() != 0 && port.before().iter().any(is_same) {
            errors.push(node.duplicate());
        }
    }
    for port in ports.elements() {
        let key = |port: &Value| json!({"protocol": port["protocol"], "port": port["port"]});
        let own = key(port.value);
        if port.before().iter().any(|other| key(other) == own) {
            let shown = print::object("ServicePort", &own);
            errors.push(FieldError::duplicate_text(port.path(), &shown));
        }
    }
}

/// Rejects wrong networks of the clients of a load balancer, in the spec or in an annotation.
pub(super) fn source_ranges(spec: &Place<'_>, errors: &mut Errors) {
    let detail = "may only be used when `type` is 'LoadBalancer'";
    let is_type = spec.has("type", "LoadBalancer");
    // The path has the Go name.
    let ranges = spec.member_as("loadBalancerSourceRanges", "LoadBalancerSourceRanges");
    if !ranges.is_empty() {
        if !is_type {
            errors.push(ranges.forbidden(detail));
        }
        let stored = ranges.stored_texts();
        for range in ranges.elements() {
            let trimmed = json!(range.text().trim());
            let place = range.instead(&trimmed);
            if !stored.iter().any(|old| old.trim() == place.text()) {
                place.invalid_for(ip::cidr_errors(place.text()), errors);
            }
        }
        return;
    }
    let annotations = spec.member("^metadata.annotations");
    let mut found = annotations
        .entries()
        .filter(|(key, _)| *key == SOURCE_RANGES);
    let Some((_, annotation)) = found.next() else {
        return;
    };
    if !is_type {
        errors.push(annotation.forbidden(detail));
    }
    let text = annotation.text().trim();
    if annotation.old.is_none_or(|old| old != annotation.value) && !text.is_empty() {
        for range in text.split(',').map(|range| json!(range.trim())) {
            let place = annotation.instead(&range);
            place.invalid_for(ip::cidr_errors(place.text()), errors);
        }
    }
}

/// Rejects the address of a load balancer, unless the stored status has it.
pub(super) fn known_ip(address: &Place<'_>, errors: &mut Errors) {
    let stored = address.member("^^").stored().iter();
    let stored: Vec<&str> = stored.map(|it| text(it, "ip")).collect();
    new_address(address, &stored, errors);
}

/// Upstream: `validateEndpointPort`.
pub(super) fn endpoint_ports(ports: &Place<'_>, errors: &mut Errors) {
    let needs_name = ports.values().count() > 1;
    for port in ports.elements() {
        port_name(&port.member("name"), needs_name, errors);
        port.check("EndpointPort", errors);
    }
}

/// Reports why no endpoint can have this address.
///
/// Upstream: `ValidateEndpointIP`.
pub(super) fn endpoint_ip(address: &Place<'_>, errors: &mut Errors) {
    let text = address.text();
    let Some(parsed) = ip::parse_sloppy(text) else {
        address.invalid_for(["must be a valid IP address"], errors);
        return;
    };
    let in_range = |ip: Ipv6Addr, prefix: u16, mask: u16| ip.segments()[0] & mask == prefix;
    let (local, multicast) = match parsed {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (in_range(ip, 0xfe80, 0xffc0), in_range(ip, 0xff02, 0xff0f)),
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
    address.invalid_for(found, errors);
}

/// Upstream: `validateEndpoints`, for the addresses.
pub(super) fn slice_addresses(addresses: &Place<'_>, errors: &mut Errors) {
    let kind = addresses.member("^^^addressType").text();
    for address in addresses.elements() {
        let text = address.text();
        let wrong = match kind {
            "IPv4" => ip::errors(text)
                .iter()
                .map(|why| (*why).to_owned())
                .collect(),
            "IPv6" => ip::canonical_errors(text),
            "FQDN" => {
                domain(&address, errors);
                continue;
            }
            _ => continue,
        };
        if !wrong.is_empty() {
            address.invalid_for(wrong, errors);
            continue;
        }
        let is_v4 = ip::parse_sloppy(text).is_some_and(|address| address.is_ipv4());
        if is_v4 != (kind == "IPv4") {
            let detail = format!("must be an {kind} address");
            errors.push(addresses.invalid_as(&json!(text), &detail));
        }
        endpoint_ip(&address, errors);
    }
}

/// Upstream: `IsFullyQualifiedDomainName`.
fn domain(name: &Place<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(name.required(""));
        return;
    }
    let trimmed = name.text().strip_suffix('.').unwrap_or(name.text());
    let mut refuse = |value: &str, why: String| {
        errors.push(name.invalid_as(&json!(value), &why));
    };
    let wrong = names::dns_subdomain(trimmed);
    if !wrong.is_empty() {
        return refuse(trimmed, wrong.join(","));
    }
    if !trimmed.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        return refuse(trimmed, why.to_owned());
    }
    let mut labels = trimmed
        .split('.')
        .map(|label| (label, names::dns_label(label)));
    if let Some((label, wrong)) = labels.find(|(_, wrong)| !wrong.is_empty()) {
        refuse(label, wrong.join(","));
    }
}

/// Upstream: `validateHints`.
pub(super) fn hints(hints: &Place<'_>, errors: &mut Errors) {
    for member in ["forZones", "forNodes"] {
        let found = list(hints.value, member).len();
        if found > HINTS_MAX {
            let field = format!("{}.{member}", hints.path());
            errors.push(FieldError::too_many(field, found, 8));
            return;
        }
        hints.check(&format!("EndpointHints/{member}"), errors);
    }
}
