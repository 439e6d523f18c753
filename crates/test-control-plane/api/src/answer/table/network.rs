//! The cells of services and endpoints.

use serde_json::{Value, json};

use super::cells::{joined, labels, list, number, or_none, text};

/// Maximum number of endpoints in a cell.
const ENDPOINTS_MAX: usize = 3;

pub(super) fn service(service: &Value, created: &str) -> Vec<Value> {
    let ports: Vec<String> = list(service, "/spec/ports")
        .map(|port| {
            let (port_number, node_port) = (number(port, "/port"), number(port, "/nodePort"));
            let protocol = text(port, "/protocol");
            if node_port > 0 {
                format!("{port_number}:{node_port}/{protocol}")
            } else {
                format!("{port_number}/{protocol}")
            }
        })
        .collect();
    vec![
        json!(text(service, "/metadata/name")),
        json!(text(service, "/spec/type")),
        json!(or_none(text(service, "/spec/clusterIP"))),
        json!(external_address(service)),
        json!(or_none(&ports.join(","))),
        json!(created),
        json!(or_none(&labels(service, "/spec/selector"))),
    ]
}

/// Upstream: `getServiceExternalIP`.
fn external_address(service: &Value) -> String {
    let own = joined(list(service, "/spec/externalIPs").filter_map(Value::as_str));
    match text(service, "/spec/type") {
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let balancers = list(service, "/status/loadBalancer/ingress");
            let addresses = joined(balancers.map(|balancer| {
                let address = text(balancer, "/ip");
                if address.is_empty() {
                    text(balancer, "/hostname")
                } else {
                    address
                }
            }));
            match (addresses.is_empty(), own.is_empty()) {
                (true, true) => "<pending>".to_owned(),
                (true, false) => own,
                (false, true) => addresses,
                (false, false) => format!("{addresses},{own}"),
            }
        }
        _ => or_none(&own).to_owned(),
    }
}

pub(super) fn endpoints(endpoints: &Value, created: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for subset in list(endpoints, "/subsets") {
        let addresses: Vec<&str> = list(subset, "/addresses").map(|a| text(a, "/ip")).collect();
        let mut ports = list(subset, "/ports")
            .map(|p| number(p, "/port"))
            .peekable();
        if ports.peek().is_none() {
            found.extend(addresses.iter().map(|address| (*address).to_owned()));
        }
        for port in ports {
            found.extend(addresses.iter().map(|address| format!("{address}:{port}")));
        }
    }
    let more = found.len().saturating_sub(ENDPOINTS_MAX);
    found.truncate(ENDPOINTS_MAX);
    let mut shown = or_none(&found.join(",")).to_owned();
    if more > 0 {
        shown = format!("{shown} + {more} more...");
    }
    vec![
        json!(text(endpoints, "/metadata/name")),
        json!(shown),
        json!(created),
    ]
}
