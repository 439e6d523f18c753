//! Host ports: each belongs to one pod of the node at a time.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::run::{PodRun, Stage};

/// Protocol and port number.
pub(super) type HostPort = (String, u64);

/// Returns the host ports that a pod needs, on any address.
pub(super) fn host_ports(pod: &Value) -> BTreeSet<HostPort> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let ports = containers
        .into_iter()
        .flatten()
        .filter_map(|container| container.get("ports")?.as_array());
    let of_host = |port: &Value| {
        let number = port["hostPort"].as_u64().filter(|number| *number > 0)?;
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        Some((protocol.to_owned(), number))
    };
    ports.flatten().filter_map(of_host).collect()
}

/// Reports whether a pod on the same node uses a port that this one needs.
pub(super) fn are_taken(runs: &BTreeMap<Box<str>, PodRun>, uid: &str) -> bool {
    let Some(wanted) = runs.get(uid).filter(|run| !run.host_ports.is_empty()) else {
        return false;
    };
    runs.values().any(|other| {
        let is_there = matches!(other.stage, Stage::Running | Stage::Stopping);
        let overlaps = !other.host_ports.is_disjoint(&wanted.host_ports);
        *other.uid != *uid && other.node == wanted.node && is_there && overlaps
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn host_ports_include_only_mapped_ports() {
        let pod = json!({"spec": {"containers": [
            {"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]},
            {"ports": [{"containerPort": 53, "hostPort": 53, "protocol": "UDP"}]},
            {},
        ]}});
        let wanted = [("TCP".to_owned(), 8081), ("UDP".to_owned(), 53)];
        assert_eq!(host_ports(&pod), BTreeSet::from(wanted));
    }
}
