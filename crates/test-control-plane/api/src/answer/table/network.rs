//! The cells of services and endpoints.

use serde_json::Value;

use super::cells::{joined, list, number, or_none, text};

/// Maximum number of endpoints in a cell.
const ENDPOINTS_MAX: usize = 3;

pub(super) fn service_ports(service: &Value) -> String {
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
    or_none(&ports.join(",")).to_owned()
}

/// Upstream: `getServiceExternalIP`.
pub(super) fn external_address(service: &Value) -> String {
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

pub(super) fn endpoints(endpoints: &Value) -> String {
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
    let shown = or_none(&found.join(",")).to_owned();
    if more > 0 {
        format!("{shown} + {more} more...")
    } else {
        shown
    }
}
