//! Rules of ingresses, their classes, and network policies.

use std::net::IpAddr;

use serde_json::json;

use super::names;
use super::place::{Errors, Place};
use crate::status::FieldError;

/// Upstream: `ValidateIngressSpec`, the part about missing rules.
pub(super) fn some_rule(spec: &Place<'_>, errors: &mut Errors) {
    let [rules, backend] = ["rules", "defaultBackend"].map(|it| spec.member(it));
    if rules.is_empty() && !backend.is_present() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        let shown = json!([]);
        errors.push(FieldError::invalid(spec.path(), &shown, detail));
    }
}

/// Upstream: `validateIngressRules`, the part about hosts.
pub(super) fn ingress_host(host: &Place<'_>, errors: &mut Errors) {
    if host.text().parse::<IpAddr>().is_ok() {
        let detail = "must be a DNS name, not an IP address";
        errors.push(host.invalid(detail));
        return;
    }
    let name = host.text().strip_prefix("*.").unwrap_or(host.text());
    host.invalid_for(names::dns_subdomain(name), errors);
}

pub(super) fn absolute_path(path: &Place<'_>, errors: &mut Errors) {
    if !path.text().starts_with('/') {
        let text = json!(path.text());
        errors.push(FieldError::invalid(
            path.path(),
            &text,
            "must be an absolute path",
        ));
    }
}

/// Upstream: `validateIngressBackend`
pub(super) fn one_backend(backend: &Place<'_>, errors: &mut Errors) {
    let [service, resource] = ["service", "resource"].map(|it| backend.member(it));
    let empty = json!("");
    let mut refuse = |detail| errors.push(FieldError::invalid(backend.path(), &empty, detail));
    match (service.is_present(), resource.is_present()) {
        (true, true) => refuse("cannot set both resource and service backends"),
        (false, false) => refuse("resource or service backend is required"),
        (false, true) => {}
        (true, false) => {
            let [name, number] =
                ["port.name", "port.number"].map(|it| !service.member(it).is_empty());
            match (name, number) {
                (true, true) => refuse("cannot set both port name & port number"),
                (false, false) => {
                    errors.push(backend.required("port name or number is required"));
                }
                _ => {}
            }
        }
    }
}

/// Rejects a name without a domain.
///
/// Upstream: `IsDomainPrefixedPath`
pub(super) fn domain_path(name: &Place<'_>, errors: &mut Errors) {
    let (domain, path) = name.text().split_once('/').unwrap_or(("", ""));
    if domain.is_empty() || path.is_empty() {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        name.invalid_for([detail], errors);
        return;
    }
    name.invalid_for(names::dns_subdomain(domain), errors);
}

/// Upstream: `IsValidCIDR`
pub(super) fn cidr(range: &Place<'_>, errors: &mut Errors) {
    let parsed = range.text().split_once('/').and_then(|(address, bits)| {
        let address: IpAddr = address.parse().ok()?;
        let bits: u8 = bits.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then_some(())
    });
    if parsed.is_none() {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        range.invalid_for([detail], errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    type Hook = fn(&Place<'_>, &mut Errors);

    fn details(hook: Hook, value: &Value) -> Vec<String> {
        let mut errors = Errors::new();
        hook(&Place::new(value, "x"), &mut errors);
        let detail = |message: String| match message.rsplit_once(": ") {
            Some((_, detail)) => detail.to_owned(),
            None => message,
        };
        errors
            .into_iter()
            .map(|error| detail(error.message))
            .collect()
    }

    #[test]
    fn backend_is_a_service_or_a_resource() {
        let service = json!({"name": "a", "port": {"number": 80}});
        let of = |value: Value| details(one_backend, &value);
        assert_eq!(of(json!({"service": service})), [""; 0]);
        assert_eq!(of(json!({"resource": {}})), [""; 0]);
        let both = json!({"service": service, "resource": {}});
        assert_eq!(of(both), ["cannot set both resource and service backends"]);
        assert_eq!(of(json!({})), ["resource or service backend is required"]);
        let bare = json!({"service": {"name": "a"}});
        assert_eq!(of(bare), ["port name or number is required"]);
    }

    #[test]
    fn hosts_and_ranges_are_checked() {
        assert_eq!(details(ingress_host, &json!("*.a.example")), [""; 0]);
        let address = details(ingress_host, &json!("10.0.0.1"));
        assert_eq!(address, ["must be a DNS name, not an IP address"]);
        assert_eq!(details(cidr, &json!("10.0.0.0/8")), [""; 0]);
        for wrong in ["10.0.0.0", "10.0.0.0/33", "::/129", "x/8"] {
            assert_eq!(details(cidr, &json!(wrong)).len(), 1, "{wrong}");
        }
        assert_eq!(details(domain_path, &json!("acme.io/foo")), [""; 0]);
        assert_eq!(details(domain_path, &json!("foo")).len(), 1);
    }
}
