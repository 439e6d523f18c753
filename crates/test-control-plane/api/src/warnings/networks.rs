//! Warnings about services and other objects of the network.

use serde_json::Value;

use super::addresses::{of_cidr, of_ip};
use super::fractions::NULL;
use crate::kinds::Kind;
use crate::members::{list, list_at, text, text_at};

/// An annotation that another one replaced.
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// Controllers that write slices whose addresses need no check.
const SLICE_CONTROLLERS: [&str; 2] = [
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
];

/// Upstream: `GetWarningsForService`.
pub(super) fn service(service: &Value, found: &mut Vec<String>) {
    let mut warn = |text: &str| found.push(text.to_owned());
    let annotations = service.pointer("/metadata/annotations");
    if annotations.is_some_and(|all| all.get(HINTS).is_some()) {
        warn(
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
             service.kubernetes.io/topology-mode instead",
        );
    }
    let spec = service.get("spec").unwrap_or(&NULL);
    let [of_type, ip] = ["type", "clusterIP"].map(|member| text(spec, member));
    let is_external = of_type == "ExternalName";
    let is_headless = of_type == "ClusterIP" && ip == "None";
    let balancer = text(spec, "loadBalancerIP");
    let has_external_ips = list(spec, "externalIPs").len() > 0;
    if !matches!(ip, "" | "None") {
        each_ip(spec, "clusterIPs", found);
    }
    let mut warn = |is_odd: bool, text: &str| {
        if is_odd {
            found.push(text.to_owned());
        }
    };
    warn(
        is_headless && !balancer.is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    warn(
        is_headless && has_external_ips,
        "spec.externalIPs is ignored for headless services",
    );
    warn(
        is_headless && text(spec, "sessionAffinity") != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    each_ip(spec, "externalIPs", found);
    if has_external_ips && !is_headless && !is_external {
        found.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
                .to_owned(),
        );
    }
    if !balancer.is_empty() {
        found.extend(of_ip("spec.loadBalancerIP", &spec["loadBalancerIP"]));
    }
    for (i, range) in list(spec, "loadBalancerSourceRanges").enumerate() {
        found.extend(of_cidr(
            &format!("spec.loadBalancerSourceRanges[{i}]"),
            range,
        ));
    }
    let mut warn = |is_odd: bool, text: &str| {
        if is_odd {
            found.push(text.to_owned());
        }
    };
    warn(
        is_external && has_external_ips,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    warn(
        !is_external && !text(spec, "externalName").is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn(
        text(spec, "trafficDistribution") == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
}

fn each_ip(spec: &Value, member: &str, found: &mut Vec<String>) {
    for (i, address) in list(spec, member).enumerate() {
        found.extend(of_ip(&format!("spec.{member}[{i}]"), address));
    }
}

/// Upstream: `networkPolicyWarnings`.
pub(super) fn network_policy(policy: &Value, found: &mut Vec<String>) {
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (i, rule) in list_at(policy, &format!("/spec/{direction}")).enumerate() {
            for (j, peer) in list(rule, peers).enumerate() {
                let Some(block) = peer.get("ipBlock") else {
                    continue;
                };
                let place = format!("spec.{direction}[{i}].{peers}[{j}].ipBlock");
                let cidr = block.get("cidr").unwrap_or(&NULL);
                found.extend(of_cidr(&format!("{place}.cidr"), cidr));
                for (k, except) in list(block, "except").enumerate() {
                    found.extend(of_cidr(&format!("{place}.except[{k}]"), except));
                }
            }
        }
    }
}

/// Upstream: `warnOnBadIPs`.
pub(super) fn endpoint_slice(slice: &Value, found: &mut Vec<String>) {
    let labels = slice.pointer("/metadata/labels").unwrap_or(&NULL);
    let manager = text(labels, "endpointslice.kubernetes.io/managed-by");
    if SLICE_CONTROLLERS.contains(&manager) {
        return;
    }
    for (i, endpoint) in list(slice, "endpoints").enumerate() {
        for (j, address) in list(endpoint, "addresses").enumerate() {
            found.extend(of_ip(&format!("endpoints[{i}].addresses[{j}]"), address));
        }
    }
}

/// The warnings about the addresses in a status.
pub(super) fn status(kind: &Kind, new: &Value, found: &mut Vec<String>) {
    match &*kind.storage {
        "pods" => {
            for member in ["podIPs", "hostIPs"] {
                for (i, address) in list_at(new, &format!("/status/{member}")).enumerate() {
                    let place = format!("status.{member}[{i}].ip");
                    found.extend(of_ip(&place, address.get("ip").unwrap_or(&NULL)));
                }
            }
        }
        "ingresses" | "services" => {
            for (i, ingress) in list_at(new, "/status/loadBalancer/ingress").enumerate() {
                if !text_at(ingress, "/ip").is_empty() {
                    let place = format!("status.loadBalancer.ingress[{i}]");
                    found.extend(of_ip(&place, &ingress["ip"]));
                }
            }
        }
        _ => {}
    }
}
