//! The cells of ingresses and their classes.

use serde_json::Value;

use super::texts::{list, or_none, text};

/// Maximum number of hosts in a cell.
const HOSTS_MAX: usize = 3;

/// Upstream: `formatHosts`
pub(super) fn hosts(ingress: &Value) -> String {
    let hosts = list(ingress, "/spec/rules").map(|rule| text(rule, "/host"));
    let hosts: Vec<&str> = hosts.filter(|host| !host.is_empty()).collect();
    let (first, rest) = hosts.split_at(hosts.len().min(HOSTS_MAX));
    match (first.is_empty(), rest.len()) {
        (true, _) => "*".to_owned(),
        (false, 0) => first.join(","),
        (false, more) => format!("{} + {more} more...", first.join(",")),
    }
}

/// Upstream: `formatPorts`
pub(super) fn ports(ingress: &Value) -> &'static str {
    match list(ingress, "/spec/tls").len() {
        0 => "80",
        _ => "80, 443",
    }
}

pub(super) fn parameters(class: &Value) -> String {
    let of = |member: &str| text(class, &format!("/spec/parameters/{member}"));
    let (kind, group, name) = (of("kind"), of("apiGroup"), of("name"));
    match (kind, group) {
        ("", _) => or_none("").to_owned(),
        (_, "") => format!("{kind}/{name}"),
        _ => format!("{kind}.{group}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ingress_cells_shorten_hosts() {
        assert_eq!((hosts(&json!({})).as_str(), ports(&json!({}))), ("*", "80"));
        let rules: Vec<Value> = (0..5).map(|i| json!({"host": format!("h{i}")})).collect();
        let ingress = json!({"spec": {"rules": rules, "tls": [{}]}});
        assert_eq!(hosts(&ingress), "h0,h1,h2 + 2 more...");
        assert_eq!(ports(&ingress), "80, 443");
    }

    #[test]
    fn parameters_name_kind_and_group() {
        assert_eq!(parameters(&json!({"spec": {}})), "<none>");
        let of = json!({"apiGroup": "example.com", "kind": "Config", "name": "a"});
        let class = json!({"spec": {"parameters": of}});
        assert_eq!(parameters(&class), "Config.example.com/a");
    }
}
