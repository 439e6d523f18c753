//! Warnings about the ports of a pod's containers.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::members::{list, number_at, text};

/// A port with its path.
struct Port<'a> {
    place: String,
    host_ip: &'a str,
    host_number: i64,
}

/// Warns about ports that occur several times, and about names that do.
pub(super) fn of_containers(containers: &[(&Value, String)], found: &mut Vec<String>) {
    let ports = containers.iter().flat_map(|(container, place)| {
        let ports = list(container, "ports").enumerate();
        ports.map(move |(i, port)| (port, format!("{place}.ports[{i}]")))
    });
    let mut known: BTreeMap<(i64, &str), Vec<Port<'_>>> = BTreeMap::new();
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut of_names = Vec::new();
    for (value, place) in ports {
        let [name, protocol] = ["name", "protocol"].map(|member| text(value, member));
        let container_port = number_at(value, "/containerPort");
        let port = Port {
            host_ip: text(value, "hostIP"),
            host_number: number_at(value, "/hostPort"),
            place,
        };
        if !port.host_ip.is_empty() && port.host_number == 0 {
            found.push(format!(
                "{}: hostIP set without hostPort: {{Name:{name} HostPort:0 \
                 ContainerPort:{container_port} Protocol:{protocol} HostIP:{}}}",
                port.place, port.host_ip
            ));
        }
        if let Some(other) = names.get(name) {
            of_names.push(format!(
                "{}: duplicate port name {name:?} with {other}, services and probes that select \
                 ports by name will use {other}",
                port.place
            ));
        } else if !name.is_empty() {
            names.insert(name, port.place.clone());
        }
        let others = known.entry((container_port, protocol)).or_default();
        for other in &*others {
            if let Some(adjective) = conflict(&port, other) {
                found.push(format!(
                    "{}: {adjective} port definition with {}",
                    port.place, other.place
                ));
            }
        }
        others.push(port);
    }
    found.extend(of_names);
}

/// Returns the adjective for the definition of a port that another definition has as well.
fn conflict(port: &Port<'_>, other: &Port<'_>) -> Option<&'static str> {
    let is_same_port = port.host_number == other.host_number;
    if is_same_port && port.host_ip == other.host_ip {
        return Some("duplicate");
    }
    if port.host_number == 0 || other.host_number == 0 {
        return Some("overlapping");
    }
    let is_ambiguous = is_same_port && port.host_ip.is_empty() != other.host_ip.is_empty();
    is_ambiguous.then_some("dangerously ambiguous")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_and_names_should_differ() {
        let container = json!({"ports": [
            {"containerPort": 1, "protocol": "TCP", "name": "a"},
            {"containerPort": 1, "protocol": "TCP", "hostPort": 2, "name": "a"},
            {"containerPort": 1, "protocol": "TCP", "hostPort": 2, "hostIP": "1.1.1.1"},
            {"containerPort": 3, "protocol": "UDP", "hostIP": "1.1.1.1"},
            {"containerPort": 3, "protocol": "TCP"},
        ]});
        let mut found = Vec::new();
        of_containers(&[(&container, "c".to_owned())], &mut found);
        let expected = [
            "c.ports[1]: overlapping port definition with c.ports[0]",
            "c.ports[2]: overlapping port definition with c.ports[0]",
            "c.ports[2]: dangerously ambiguous port definition with c.ports[1]",
            "c.ports[3]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:3 \
             Protocol:UDP HostIP:1.1.1.1}",
            "c.ports[1]: duplicate port name \"a\" with c.ports[0], services and probes that \
             select ports by name will use c.ports[0]",
        ];
        assert_eq!(found, expected);
    }
}
