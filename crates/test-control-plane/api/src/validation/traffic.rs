//! Rules of ingresses, their classes, and network policies.

use serde_json::{Value, json};

use super::engine::{Errors, Place, number_or_name};
use crate::go::{ip, names};
use crate::members::{list_at, text};
use crate::status::FieldError;

/// The annotation that classes replaced.
const CLASS: &str = "kubernetes.io/ingress.class";

pub(super) fn ingress_class_annotation(ingress: &Place<'_>, errors: &mut Errors) {
    let annotations = ingress.member("metadata.annotations");
    let annotation = annotations.value.get(CLASS).unwrap_or(&Value::Null);
    let class = ingress.member("spec.ingressClassName");
    if class.is_present() && !annotation.is_null() && annotation != class.value {
        let field = format!("annotations.{CLASS}");
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(field, annotation, detail));
    }
}

/// Checks the paths of a rule. Those of hosts with a wildcard may stay invalid.
pub(super) fn ingress_paths(http: &Place<'_>, errors: &mut Errors) {
    const BLOCK: &str = "HTTPIngressRuleValue";
    let is_wild = |rule: &Value| text(rule, "host").contains('*');
    let was_invalid = |old: &Value| {
        let mut rules = list_at(old, "/spec/rules").filter(|rule| is_wild(rule));
        rules.any(|rule| {
            let value = rule.get("http").unwrap_or(&Value::Null);
            let place = Place::root(http.context, value, None, "");
            place.is_present() && http.context.rules.breaks(BLOCK, &place)
        })
    };
    let is_kept = http.up().is_some_and(|rule| is_wild(rule.value))
        && http.context.old.is_some_and(was_invalid);
    if !is_kept {
        http.check(BLOCK, errors);
    }
}

/// Rejects a name without a domain.
///
/// Upstream: `IsDomainPrefixedPath`.
pub(super) fn domain_path(name: &Place<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(name.required(""));
        return;
    }
    let (domain, path) = name.text().split_once('/').unwrap_or(("", ""));
    if domain.is_empty() || path.is_empty() {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        name.invalid_for([detail], errors);
        return;
    }
    let mut refuse = |value: &str, why: &str| {
        errors.push(name.invalid_as(&json!(value), why));
    };
    for why in names::dns_subdomain(domain) {
        refuse(domain, why);
    }
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
    if !path.bytes().all(is_part) {
        let why = "Invalid path (regex used for validation is \
                   '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        refuse(path, why);
    }
}

/// Upstream: `ValidateNetworkPolicyPort`.
pub(super) fn policy_port(port: &Place<'_>, errors: &mut Errors) {
    let [first, last] = ["port", "endPort"].map(|member| port.member(member));
    let refused = match first.value {
        Value::Null => "may not be specified when `port` is not specified",
        Value::String(_) => "may not be specified when `port` is non-numeric",
        _ => "",
    };
    if refused.is_empty() {
        number_or_name(&first, errors);
        if last.is_present() {
            if last.number() < first.number() {
                let detail = "must be greater than or equal to `port`";
                errors.push(last.invalid_as(first.value, detail));
            }
            number_or_name(&last, errors);
        }
        return;
    }
    if last.is_present() {
        errors.push(last.invalid(refused));
    }
    if first.is_present() {
        number_or_name(&first, errors);
    }
}

/// Returns the networks in a stored policy.
fn stored_networks<'a>(of: &Place<'a>) -> Vec<&'a str> {
    let mut networks = Vec::new();
    for (rules, peers) in [("/spec/ingress", "/from"), ("/spec/egress", "/to")] {
        let rules = of
            .context
            .old
            .map(|old| list_at(old, rules))
            .into_iter()
            .flatten();
        let peers = rules.flat_map(|rule| list_at(rule, peers));
        for block in peers.filter_map(|peer| peer.get("ipBlock")) {
            networks.push(text(block, "cidr"));
            networks.extend(list_at(block, "/except").filter_map(Value::as_str));
        }
    }
    networks
}

/// Upstream: `ValidateIPBlock`.
pub(super) fn ip_block(block: &Place<'_>, errors: &mut Errors) {
    let network = block.member("cidr");
    if network.is_empty() {
        errors.push(network.required(""));
        return;
    }
    let stored = stored_networks(block);
    let check = |place: &Place<'_>, errors: &mut Errors| {
        if !stored.contains(&place.text()) {
            place.invalid_for(ip::cidr_errors(place.text()), errors);
        }
    };
    check(&network, errors);
    let Some(outer) = ip::Cidr::parse(network.text()) else {
        return;
    };
    for except in block.member("except").elements() {
        check(&except, errors);
        let inner = ip::Cidr::parse(except.text());
        let is_outside = inner
            .is_some_and(|inner| !outer.contains(inner.network()) || outer.length >= inner.length);
        if is_outside {
            except.invalid_for(["must be a strict subset of `cidr`"], errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::tests::details;

    #[test]
    fn names_and_networks_are_checked() {
        assert_eq!(details(domain_path, &json!("acme.io/foo")), [""; 0]);
        for wrong in ["", "foo", "a b/c", "acme.io/\""] {
            assert_eq!(details(domain_path, &json!(wrong)).len(), 1, "{wrong}");
        }
        let of =
            |except: &str| details(ip_block, &json!({"cidr": "10.0.0.0/8", "except": [except]}));
        assert_eq!(of("10.1.0.0/16"), [""; 0]);
        for wrong in ["10.0.0.0/8", "11.0.0.0/16"] {
            assert_eq!(of(wrong), ["must be a strict subset of `cidr`"], "{wrong}");
        }
    }

    #[test]
    fn ranges_of_ports_increase() {
        let of =
            |port: Value, end: Value| details(policy_port, &json!({"port": port, "endPort": end}));
        assert_eq!(of(json!(80), json!(81)), [""; 0]);
        assert_eq!(of(json!(80), json!(79)).len(), 1);
        assert_eq!(of(json!("http"), json!(79)).len(), 1);
        assert_eq!(of(Value::Null, json!(79)).len(), 1);
    }
}
