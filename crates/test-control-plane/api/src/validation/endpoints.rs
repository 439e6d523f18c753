//! Rules of endpoints.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::{Value, json};

use super::services::PROTOCOLS;
use super::{FieldError, Subject, at, names};
use crate::members::text_at;

type Errors = Vec<FieldError>;

/// Upstream: `validateEndpointSubsets`.
pub(super) fn endpoints(subject: Subject<'_>, errors: &mut Errors) {
    for (i, subset) in list(&subject.new.value, "/subsets").iter().enumerate() {
        let path = format!("subsets[{i}]");
        let [ready, not_ready, ports] =
            ["/addresses", "/notReadyAddresses", "/ports"].map(|member| list(subset, member));
        if ready.is_empty() && not_ready.is_empty() {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(path.as_str(), detail));
        }
        for (member, addresses) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
            for (j, found) in addresses.iter().enumerate() {
                address(found, &format!("{path}.{member}[{j}]"), errors);
            }
        }
        for (j, found) in ports.iter().enumerate() {
            port(
                found,
                ports.len() > 1,
                &format!("{path}.ports[{j}]"),
                errors,
            );
        }
    }
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let list = at(value, pointer).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Upstream: `validateEndpointAddress`.
fn address(address: &Value, path: &str, errors: &mut Errors) {
    let field = format!("{path}.ip");
    let text = text_at(address, "/ip");
    let parsed = text.parse::<IpAddr>().ok();
    if parsed.is_none() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(FieldError::invalid(field.as_str(), &json!(text), detail));
    }
    let hostname = text_at(address, "/hostname");
    if !hostname.is_empty() {
        let wrong = names::dns_label(hostname);
        refuse_each(hostname, &wrong, &format!("{path}.hostname"), errors);
    }
    if let Some(node) = at(address, "/nodeName").and_then(Value::as_str) {
        let wrong = names::dns_subdomain(node);
        refuse_each(node, &wrong, &format!("{path}.nodeName"), errors);
    }
    let wrong = parsed.map_or_else(
        || vec!["must be a valid IP address".to_owned()],
        |ip| special(ip, text),
    );
    refuse_each(text, &wrong, &field, errors);
}

fn refuse_each(value: &str, wrong: &[impl AsRef<str>], field: &str, errors: &mut Errors) {
    for why in wrong {
        errors.push(FieldError::invalid(field, &json!(value), why.as_ref()));
    }
}

/// Returns the reasons why no endpoint can have this address.
///
/// Upstream: `ValidateEndpointIP`.
fn special(ip: IpAddr, text: &str) -> Vec<String> {
    let in_range = |ip: Ipv6Addr, prefix: u16, mask: u16| ip.segments()[0] & mask == prefix;
    let (local, multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (in_range(ip, 0xfe80, 0xffc0), in_range(ip, 0xff02, 0xffff)),
    };
    let mut found = Vec::new();
    if ip.is_unspecified() {
        found.push(format!("may not be unspecified ({text})"));
    }
    for (is_so, range) in [
        (ip.is_loopback(), "loopback range (127.0.0.0/8, ::1/128)"),
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
    found
}

/// Upstream: `validateEndpointPort`.
fn port(port: &Value, needs_name: bool, path: &str, errors: &mut Errors) {
    let name = text_at(port, "/name");
    let field = format!("{path}.name");
    if !name.is_empty() {
        refuse_each(name, &names::dns_label(name), &field, errors);
    } else if needs_name {
        errors.push(FieldError::required(field, ""));
    }
    let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=65535).contains(&number) {
        let detail = "must be between 1 and 65535, inclusive";
        let field = format!("{path}.port");
        errors.push(FieldError::invalid(field, &json!(number), detail));
    }
    let protocol = text_at(port, "/protocol");
    if !PROTOCOLS.contains(&protocol) {
        let field = format!("{path}.protocol");
        let protocol = json!(protocol);
        errors.push(FieldError::not_supported(field, &protocol, &PROTOCOLS));
    }
    if let Some(protocol) = at(port, "/appProtocol").and_then(Value::as_str) {
        let field = format!("{path}.appProtocol");
        refuse_each(protocol, &names::qualified_name(protocol), &field, errors);
    }
}
