//! Rules of a pod's spec, in a pod or a template. Errors come in the reference's order.
//!
//! Upstream: `ValidatePodSpec`.

pub(super) mod container;
pub(super) mod env;
pub(super) mod probe;
pub(super) mod resources;
pub(super) mod scheduling;
pub(super) mod volumes;

use std::collections::BTreeSet;

use serde_json::json;

use self::container::Containers;
use super::place::{Errors, Place};
use super::{names, rules};
use crate::status::FieldError;

const OPERATING_SYSTEMS: [&str; 2] = ["linux", "windows"];

/// Validates the spec of a pod. `extra_volumes` are volumes that exist outside the spec's list
/// (those of claim templates).
pub(super) fn validate_spec(spec: &Place<'_>, extra_volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let mut volumes = volumes::validate(spec, errors);
    volumes.extend(extra_volumes);
    Containers::new(&volumes).validate(spec, errors);
    rules::check("PodSpec", spec, errors);
}

pub(super) fn operating_system(os: &Place<'_>, errors: &mut Errors) {
    let name = os.text_of("name");
    if !name.is_empty() && !OPERATING_SYSTEMS.contains(&name) {
        let name = json!(name);
        errors.push(FieldError::not_supported(
            os.path(),
            &name,
            &OPERATING_SYSTEMS,
        ));
    }
}

/// Upstream: `validatePodHostNetworkDeps`.
pub(super) fn host_network(spec: &Place<'_>, errors: &mut Errors) {
    if spec.value["hostNetwork"] != true {
        return;
    }
    for container in spec.member("containers").elements() {
        for port in container.member("ports").elements() {
            let inner = port.member("containerPort");
            if port.member("hostPort").number() != inner.number() {
                let detail = "must match `hostPort` when `hostNetwork` is true";
                let number = json!(inner.number());
                errors.push(FieldError::invalid(inner.path(), &number, detail));
            }
        }
    }
}

/// Validates a search domain.
///
/// Upstream: `validatePodDNSConfig`, but for its limits of numbers and lengths.
pub(super) fn search_domain(domain: &Place<'_>, errors: &mut Errors) {
    let search = domain.text();
    if search != "." {
        // Underscores are allowed because some resolvers need them.
        let name = search.strip_suffix('.').unwrap_or(search).replace('_', "0");
        domain.invalid_for(names::dns_subdomain(&name), errors);
    }
}

/// Upstream: `validatePodResourceClaims`.
pub(super) fn claim_source(claim: &Place<'_>, errors: &mut Errors) {
    let sources = ["resourceClaimName", "resourceClaimTemplateName"];
    let found = sources
        .iter()
        .filter(|name| claim.member(name).is_present());
    let detail = match found.count() {
        0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        1 => return,
        _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
    };
    errors.push(claim.invalid(detail));
}

#[cfg(test)]
mod tests;
