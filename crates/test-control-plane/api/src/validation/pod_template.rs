//! Rules of a pod's spec, in a pod or a template. Errors come in the reference's order.
//!
//! Upstream: `ValidatePodSpec`.

mod affinity;
mod container;
mod dns;
mod env;
mod probe;
mod resources;
mod scheduling;
mod volumes;

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use self::container::Containers;
use super::label_selector::label_name as qualified;
use super::{FieldError, at, names};
use crate::members::{list, text};

/// The errors so far.
pub(super) type Errors = Vec<FieldError>;

/// The error for an invalid IP address.
pub(super) const IP_MESSAGE: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];

const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

const PREEMPTION_POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

const OPERATING_SYSTEMS: [&str; 2] = ["linux", "windows"];

/// Validates the spec of a pod. `extra_volumes` are volumes that exist outside the spec's list
/// (those of claim templates).
pub(super) fn validate_spec(
    spec: &Value,
    path: &str,
    extra_volumes: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let mut volumes = volumes::validate(spec, path, errors);
    volumes.extend(extra_volumes);
    Containers::new(&volumes).validate(spec, path, errors);
    host_network(spec, path, errors);
    host_aliases(spec, path, errors);
    dns::validate(spec, path, errors);
    resource_claims(spec, path, errors);
    one_of(spec, "restartPolicy", &RESTART_POLICIES, path, errors);
    one_of(spec, "dnsPolicy", &DNS_POLICIES, path, errors);
    scheduling::node_selector(spec, path, errors);
    security_context(spec, path, errors);
    affinity::validate(spec, path, errors);
    scheduling::gates(spec, path, errors);
    scheduling::spread_constraints(spec, path, errors);
    for member in ["serviceAccountName", "nodeName"] {
        subdomain(spec, member, path, errors);
    }
    let seconds = number(spec, "activeDeadlineSeconds");
    if let Some(seconds) = seconds.filter(|s| !(1..=i64::from(i32::MAX)).contains(s)) {
        let detail = "must be between 1 and 2147483647, inclusive";
        let field = format!("{path}.activeDeadlineSeconds");
        errors.push(FieldError::invalid(field, &json!(seconds), detail));
    }
    for member in ["hostname", "subdomain"] {
        let name = text(spec, member);
        if !name.is_empty() {
            label(name, &format!("{path}.{member}"), errors);
        }
    }
    scheduling::tolerations(spec, path, errors);
    subdomain(spec, "priorityClassName", path, errors);
    subdomain(spec, "runtimeClassName", path, errors);
    one_of(spec, "preemptionPolicy", &PREEMPTION_POLICIES, path, errors);
    if let Some(os) = at(spec, "/os") {
        match text(os, "name") {
            "" => errors.push(FieldError::required(
                format!("{path}.os.name"),
                "cannot be empty",
            )),
            name if OPERATING_SYSTEMS.contains(&name) => {}
            name => {
                let field = format!("{path}.os");
                errors.push(FieldError::not_supported(
                    field,
                    &json!(name),
                    &OPERATING_SYSTEMS,
                ));
            }
        }
    }
}

/// Validates the images of pods. Templates have no such rule.
///
/// Upstream: `validateContainersOnlyForPod`.
pub(super) fn validate_images(spec: &Value, errors: &mut Errors) {
    for member in ["containers", "initContainers"] {
        for (i, container) in list(spec, member).enumerate() {
            let image = text(container, "image");
            if image != image.trim() {
                let field = format!("spec.{member}[{i}].image");
                let detail = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(field, &json!(image), detail));
            }
        }
    }
}

/// Upstream: `ValidateHostAliases`.
fn host_aliases(spec: &Value, path: &str, errors: &mut Errors) {
    for (i, alias) in list(spec, "hostAliases").enumerate() {
        let path = format!("{path}.hostAliases[{i}]");
        let ip = text(alias, "ip");
        if ip.parse::<IpAddr>().is_err() {
            let field = format!("{path}.ip");
            errors.push(FieldError::invalid(field, &json!(ip), IP_MESSAGE));
        }
        for name in list(alias, "hostnames").filter_map(Value::as_str) {
            for message in names::dns_subdomain(name) {
                let field = format!("{path}.hostnames");
                errors.push(FieldError::invalid(field, &json!(name), message));
            }
        }
    }
}

/// Upstream: `validatePodHostNetworkDeps`.
fn host_network(spec: &Value, path: &str, errors: &mut Errors) {
    if spec.get("hostNetwork") != Some(&Value::Bool(true)) {
        return;
    }
    for (i, container) in list(spec, "containers").enumerate() {
        for (j, port) in list(container, "ports").enumerate() {
            let of = |member: &str| number(port, member).unwrap_or(0);
            if of("hostPort") != of("containerPort") {
                let field = format!("{path}.containers[{i}].ports[{j}].containerPort");
                let detail = "must match `hostPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(
                    field,
                    &json!(of("containerPort")),
                    detail,
                ));
            }
        }
    }
}

fn security_context(spec: &Value, path: &str, errors: &mut Errors) {
    if let Some(context) = at(spec, "/securityContext") {
        let path = format!("{path}.securityContext");
        for member in ["fsGroup", "runAsUser", "runAsGroup"] {
            identifier(context, member, &path, errors);
        }
        for (i, sysctl) in list(context, "sysctls").enumerate() {
            required(sysctl, "name", &format!("{path}.sysctls[{i}]"), errors);
        }
    }
}

/// Upstream: `validatePodResourceClaims`.
fn resource_claims(spec: &Value, path: &str, errors: &mut Errors) {
    for (i, claim) in list(spec, "resourceClaims").enumerate() {
        let path = format!("{path}.resourceClaims[{i}]");
        match text(claim, "name") {
            "" => errors.push(FieldError::required(format!("{path}.name"), "")),
            name => label(name, &format!("{path}.name"), errors),
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let found = sources
            .iter()
            .filter(|name| at(claim, &format!("/{name}")).is_some());
        let detail = match found.count() {
            0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            1 => continue,
            _ => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            }
        };
        errors.push(FieldError::invalid(path, claim, detail));
    }
}

/// Validates a user or group id.
fn identifier(context: &Value, member: &str, path: &str, errors: &mut Errors) {
    let id = number(context, member);
    if let Some(id) = id.filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
        let detail = "must be between 0 and 2147483647, inclusive";
        errors.push(FieldError::invalid(
            format!("{path}.{member}"),
            &json!(id),
            detail,
        ));
    }
}

fn one_of(spec: &Value, member: &str, known: &[&str], path: &str, errors: &mut Errors) {
    let value = text(spec, member);
    if !value.is_empty() && !known.contains(&value) {
        let field = format!("{path}.{member}");
        errors.push(FieldError::not_supported(field, &json!(value), known));
    }
}

fn label(name: &str, field: &str, errors: &mut Errors) {
    for message in names::dns_label(name) {
        errors.push(FieldError::invalid(field, &json!(name), message));
    }
}

fn subdomain(spec: &Value, member: &str, path: &str, errors: &mut Errors) {
    let name = text(spec, member);
    if !name.is_empty() {
        for message in names::dns_subdomain(name) {
            let field = format!("{path}.{member}");
            errors.push(FieldError::invalid(field, &json!(name), message));
        }
    }
}

fn required(value: &Value, member: &str, path: &str, errors: &mut Errors) {
    if text(value, member).is_empty() {
        errors.push(FieldError::required(format!("{path}.{member}"), ""));
    }
}

fn number(value: &Value, member: &str) -> Option<i64> {
    value.get(member)?.as_i64()
}

#[cfg(test)]
mod tests;
