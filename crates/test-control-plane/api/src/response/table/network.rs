//! The cells of services, endpoints and their slices.

use serde_json::Value;

use super::texts::{joined, list, number, or_none, text};

/// Maximum number of endpoints or ports in a cell.
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
            let addresses = balancer_addresses(service);
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

/// Returns the addresses of the load balancers of a service or an ingress.
pub(super) fn balancer_addresses(object: &Value) -> String {
    let balancers = list(object, "/status/loadBalancer/ingress");
    joined(balancers.map(|balancer| match text(balancer, "/ip") {
        "" => text(balancer, "/hostname"),
        address => address,
    }))
}

/// Upstream: `formatDiscoveryPorts`
pub(super) fn slice_ports(slice: &Value) -> String {
    let ports = list(slice, "/ports").map(|port| match number(port, "/port") {
        0 => "*".to_owned(),
        port => port.to_string(),
    });
    first_few(ports.collect(), "<unset>")
}

/// Upstream: `formatDiscoveryEndpoints`
pub(super) fn slice_endpoints(slice: &Value) -> String {
    let addresses = list(slice, "/endpoints").flat_map(|it| list(it, "/addresses"));
    let addresses = addresses.filter_map(Value::as_str);
    first_few(addresses.map(str::to_owned).collect(), "<unset>")
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
    first_few(found, "<none>")
}

/// Joins the first texts and counts the others.
fn first_few(mut texts: Vec<String>, if_none: &str) -> String {
    let more = texts.len().saturating_sub(ENDPOINTS_MAX);
    texts.truncate(ENDPOINTS_MAX);
    match (texts.is_empty(), more) {
        (true, _) => if_none.to_owned(),
        (false, 0) => texts.join(","),
        (false, more) => format!("{} + {more} more...", texts.join(",")),
    }
}
