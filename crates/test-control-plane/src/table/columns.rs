//! The columns of each kind; with the priority 1 those of wide output.

use serde_json::{Value, json};

use crate::kinds::Kind;

type Column = (&'static str, u8);

/// The columns of a kind without any of its own.
const DEFAULT: &[Column] = &[("Name", 0), ("Age", 0)];

fn columns(kind: &Kind) -> &'static [Column] {
    match kind.storage {
        "statefulsets" => &[
            ("Name", 0),
            ("Ready", 0),
            ("Age", 0),
            ("Containers", 1),
            ("Images", 1),
        ],
        "pods" => &[
            ("Name", 0),
            ("Ready", 0),
            ("Status", 0),
            ("Restarts", 0),
            ("Age", 0),
            ("IP", 1),
            ("Node", 1),
            ("Nominated Node", 1),
            ("Readiness Gates", 1),
        ],
        "persistentvolumeclaims" => &[
            ("Name", 0),
            ("Status", 0),
            ("Volume", 0),
            ("Capacity", 0),
            ("Access Modes", 0),
            ("StorageClass", 0),
            ("VolumeAttributesClass", 0),
            ("Age", 0),
            ("VolumeMode", 1),
        ],
        "persistentvolumes" => &[
            ("Name", 0),
            ("Capacity", 0),
            ("Access Modes", 0),
            ("Reclaim Policy", 0),
            ("Status", 0),
            ("Claim", 0),
            ("StorageClass", 0),
            ("VolumeAttributesClass", 0),
            ("Reason", 0),
            ("Age", 0),
            ("VolumeMode", 1),
        ],
        "controllerrevisions" => &[("Name", 0), ("Controller", 0), ("Revision", 0), ("Age", 0)],
        "events" => &[
            ("Last Seen", 0),
            ("Type", 0),
            ("Reason", 0),
            ("Object", 0),
            ("Subobject", 1),
            ("Source", 1),
            ("Message", 0),
            ("First Seen", 1),
            ("Count", 1),
            ("Name", 1),
        ],
        "leases" => &[("Name", 0), ("Holder", 0), ("Age", 0)],
        "namespaces" => &[("Name", 0), ("Status", 0), ("Age", 0)],
        "services" => &[
            ("Name", 0),
            ("Type", 0),
            ("Cluster-IP", 0),
            ("External-IP", 0),
            ("Port(s)", 0),
            ("Age", 0),
            ("Selector", 1),
        ],
        "nodes" => &[
            ("Name", 0),
            ("Status", 0),
            ("Roles", 0),
            ("Age", 0),
            ("Version", 0),
            ("Internal-IP", 1),
            ("External-IP", 1),
            ("OS-Image", 1),
            ("Kernel-Version", 1),
            ("Container-Runtime", 1),
        ],
        "configmaps" => &[("Name", 0), ("Data", 0), ("Age", 0)],
        "secrets" => &[("Name", 0), ("Type", 0), ("Data", 0), ("Age", 0)],
        "poddisruptionbudgets" => &[
            ("Name", 0),
            ("Min Available", 0),
            ("Max Unavailable", 0),
            ("Allowed Disruptions", 0),
            ("Age", 0),
        ],
        _ => DEFAULT,
    }
}

/// The `columnDefinitions` of a kind's table.
pub(super) fn definitions(kind: &Kind) -> Vec<Value> {
    columns(kind)
        .iter()
        .map(|(name, priority)| {
            json!({
                "name": name,
                "type": if *name == "Allowed Disruptions" { "integer" } else { "string" },
                "format": if *name == "Name" { "name" } else { "" },
                "description": "",
                "priority": priority,
            })
        })
        .collect()
}
