//! Warnings about the forms of addresses and networks, which are valid.

use std::net::IpAddr;

use serde_json::Value;

use crate::go::ip::{self, Cidr};

/// Returns the warning about the form of an address.
///
/// Upstream: `GetWarningsForIP`.
pub(super) fn of_ip(place: &str, address: &Value) -> Option<String> {
    let text = address.as_str()?;
    let found = ip::parse_sloppy(text)?;
    if ip::errors(text).is_empty() {
        let is_canonical = found.is_ipv4() || found.to_string() == text;
        return (!is_canonical).then(|| {
            format!(
                "{place}: IPv6 address {text:?} should be in RFC 5952 canonical format (\"{found}\")"
            )
        });
    }
    Some(format!(
        "{place}: non-standard IP address {text:?} is invalid: use \"{found}\""
    ))
}

/// Returns the warnings about the form of a network.
///
/// Upstream: `GetWarningsForCIDR`.
pub(super) fn of_cidr(place: &str, network: &Value) -> Vec<String> {
    let text = network.as_str().unwrap_or_default();
    let Some(cidr) = Cidr::parse(text) else {
        return Vec::new();
    };
    let (first, address) = (cidr.network(), cidr.address);
    let canonical = format!("{first}/{}", cidr.length);
    let mut found = Vec::new();
    if first != address {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        found.push(format!(
            "{place}: CIDR value {text:?} is ambiguous in this context (should be {canonical:?} or \
             \"{address}/{bits}\"?)"
        ));
    }
    let (plain, length) = text.split_once('/').unwrap_or((text, ""));
    let is_standard = plain.parse::<IpAddr>().is_ok()
        && ip::errors(plain).is_empty()
        && (length.len() == 1 || !length.starts_with('0'));
    if !is_standard {
        found.push(format!(
            "{place}: non-standard CIDR value {text:?} is invalid: use {canonical:?}"
        ));
    }
    if found.is_empty() && !address.is_ipv4() && canonical != text {
        found.push(format!(
            "{place}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format \
             ({canonical:?})"
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_forms_than_the_canonical_one_are_named() {
        let of = |text: &str| of_ip("a", &json!(text)).unwrap_or_default();
        assert_eq!(of("10.0.0.1"), "");
        assert_eq!(
            of("010.0.0.1"),
            "a: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\""
        );
        assert!(of("FE80::1").contains("canonical format (\"fe80::1\")"));
        let of = |text: &str| of_cidr("a", &json!(text));
        assert_eq!(of("10.0.0.0/8"), [""; 0]);
        assert!(of("10.0.0.1/8")[0].contains("should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?"));
        assert!(of("FE80::/16")[0].contains("(\"fe80::/16\")"));
        assert!(of("10.0.0.0/08")[0].contains("use \"10.0.0.0/8\""));
    }
}
