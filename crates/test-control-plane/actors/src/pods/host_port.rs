//! Host ports: each belongs to one pod of a node at a time.

use serde_json::Value;

use kube_test_control_plane_api::members::{list, list_at, text};

/// A host port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    port: i64,
    protocol: String,
    /// `None` for all addresses of the node.
    address: Option<String>,
}

impl HostPort {
    /// Returns the host ports of a pod.
    pub(crate) fn of(pod: &Value) -> Vec<Self> {
        let sidecars = list_at(pod, "/spec/initContainers");
        let sidecars = sidecars.filter(|container| container["restartPolicy"] == "Always");
        list_at(pod, "/spec/containers")
            .chain(sidecars)
            .flat_map(|container| list(container, "ports"))
            .filter_map(|port| {
                let number = port.get("hostPort").and_then(Value::as_i64);
                let protocol = text(port, "protocol");
                let protocol = if protocol.is_empty() { "TCP" } else { protocol };
                let address = text(port, "hostIP");
                let is_one = !matches!(address, "" | "0.0.0.0" | "::");
                Some(Self {
                    port: number.filter(|number| *number > 0)?,
                    protocol: protocol.to_owned(),
                    address: is_one.then(|| address.to_owned()),
                })
            })
            .collect()
    }

    /// Reports whether two ports can't be used on the same node.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        let is_one = self.address.is_some() && other.address.is_some();
        (self.port, &self.protocol) == (other.port, &other.protocol)
            && (!is_one || self.address == other.address)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_conflict_by_number_protocol_and_address() {
        let port = |port: Value| {
            let pod = json!({"spec": {"containers": [{"ports": [port]}]}});
            HostPort::of(&pod).remove(0)
        };
        let some = port(json!({"hostPort": 80}));
        for (other, conflicts) in [
            (json!({"hostPort": 80, "protocol": "TCP"}), true),
            (json!({"hostPort": 81}), false),
            (json!({"hostPort": 80, "protocol": "UDP"}), false),
            (json!({"hostPort": 80, "hostIP": "10.0.0.1"}), true),
        ] {
            assert_eq!(some.conflicts(&port(other.clone())), conflicts, "{other}");
        }
        let a = port(json!({"hostPort": 80, "hostIP": "10.0.0.1"}));
        assert!(!a.conflicts(&port(json!({"hostPort": 80, "hostIP": "10.0.0.2"}))));
        let none = json!({"spec": {"containers": [{"ports": [{"containerPort": 80}]}]}});
        assert!(HostPort::of(&none).is_empty());
    }
}
