//! The columns of each kind. Priority 1 marks columns of wide output.

use serde_json::{Value, json};

use crate::kinds::Kind;

/// A column: its name, the type of its cells, and its priority.
type Column = (&'static str, &'static str, u8);

/// A text column.
const fn text(name: &'static str) -> Column {
    (name, "string", 0)
}

/// A text column of wide output.
const fn wide(name: &'static str) -> Column {
    (name, "string", 1)
}

/// A number column.
const fn number(name: &'static str) -> Column {
    (name, "integer", 0)
}

/// The columns of kinds without a printer in the reference.
const DEFAULT: &[Column] = &[text("Name"), ("Created At", "date", 0)];

#[expect(clippy::too_many_lines, reason = "a table, with a line per column")]
fn columns(kind: &Kind) -> &'static [Column] {
    match kind.storage {
        "statefulsets" => {
            const {
                &[
                    text("Name"),
                    text("Ready"),
                    text("Age"),
                    wide("Containers"),
                    wide("Images"),
                ]
            }
        }
        "pods" => {
            const {
                &[
                    text("Name"),
                    text("Ready"),
                    text("Status"),
                    text("Restarts"),
                    text("Age"),
                    wide("IP"),
                    wide("Node"),
                    wide("Nominated Node"),
                    wide("Readiness Gates"),
                ]
            }
        }
        "persistentvolumeclaims" => {
            const {
                &[
                    text("Name"),
                    text("Status"),
                    text("Volume"),
                    text("Capacity"),
                    text("Access Modes"),
                    text("StorageClass"),
                    text("VolumeAttributesClass"),
                    text("Age"),
                    wide("VolumeMode"),
                ]
            }
        }
        "persistentvolumes" => {
            const {
                &[
                    text("Name"),
                    text("Capacity"),
                    text("Access Modes"),
                    text("Reclaim Policy"),
                    text("Status"),
                    text("Claim"),
                    text("StorageClass"),
                    text("VolumeAttributesClass"),
                    text("Reason"),
                    text("Age"),
                    wide("VolumeMode"),
                ]
            }
        }
        "controllerrevisions" => {
            const {
                &[
                    text("Name"),
                    text("Controller"),
                    text("Revision"),
                    text("Age"),
                ]
            }
        }
        "events" => {
            const {
                &[
                    text("Last Seen"),
                    text("Type"),
                    text("Reason"),
                    text("Object"),
                    wide("Subobject"),
                    wide("Source"),
                    text("Message"),
                    wide("First Seen"),
                    wide("Count"),
                    wide("Name"),
                ]
            }
        }
        "scales" => {
            const {
                &[
                    text("Name"),
                    number("Desired"),
                    number("Available"),
                    text("Age"),
                ]
            }
        }
        "leases" => const { &[text("Name"), text("Holder"), text("Age")] },
        "namespaces" => const { &[text("Name"), text("Status"), text("Age")] },
        "services" => {
            const {
                &[
                    text("Name"),
                    text("Type"),
                    text("Cluster-IP"),
                    text("External-IP"),
                    text("Port(s)"),
                    text("Age"),
                    wide("Selector"),
                ]
            }
        }
        "nodes" => {
            const {
                &[
                    text("Name"),
                    text("Status"),
                    text("Roles"),
                    text("Age"),
                    text("Version"),
                    wide("Internal-IP"),
                    wide("External-IP"),
                    wide("OS-Image"),
                    wide("Kernel-Version"),
                    wide("Container-Runtime"),
                ]
            }
        }
        "storageclasses" => {
            const {
                &[
                    text("Name"),
                    text("Provisioner"),
                    text("ReclaimPolicy"),
                    text("VolumeBindingMode"),
                    text("AllowVolumeExpansion"),
                    text("Age"),
                ]
            }
        }
        "configmaps" => const { &[text("Name"), text("Data"), text("Age")] },
        "secrets" => const { &[text("Name"), text("Type"), text("Data"), text("Age")] },
        "poddisruptionbudgets" => {
            const {
                &[
                    text("Name"),
                    text("Min Available"),
                    text("Max Unavailable"),
                    number("Allowed Disruptions"),
                    text("Age"),
                ]
            }
        }
        "serviceaccounts" => const { &[text("Name"), text("Age")] },
        "deployments" => {
            const {
                &[
                    text("Name"),
                    text("Ready"),
                    text("Up-to-date"),
                    text("Available"),
                    text("Age"),
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            }
        }
        "replicasets" | "replicationcontrollers" => {
            const {
                &[
                    text("Name"),
                    number("Desired"),
                    number("Current"),
                    number("Ready"),
                    text("Age"),
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            }
        }
        "daemonsets" => {
            const {
                &[
                    text("Name"),
                    number("Desired"),
                    number("Current"),
                    number("Ready"),
                    number("Up-to-date"),
                    number("Available"),
                    text("Node Selector"),
                    text("Age"),
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            }
        }
        "podtemplates" => {
            const {
                &[
                    text("Name"),
                    text("Containers"),
                    text("Images"),
                    text("Pod Labels"),
                ]
            }
        }
        "endpoints" => const { &[text("Name"), text("Endpoints"), text("Age")] },
        "rolebindings" | "clusterrolebindings" => {
            const {
                &[
                    text("Name"),
                    text("Role"),
                    text("Age"),
                    wide("Users"),
                    wide("Groups"),
                    wide("ServiceAccounts"),
                ]
            }
        }
        "resourcequotas" => const { &[text("Name"), text("Request"), text("Limit"), text("Age")] },
        "componentstatuses" => {
            const { &[text("Name"), text("Status"), text("Message"), text("Error")] }
        }
        _ => DEFAULT,
    }
}

/// Returns the `columnDefinitions` of a kind's table.
pub(super) fn definitions(kind: &Kind) -> Vec<Value> {
    columns(kind)
        .iter()
        .map(|(name, cells, priority)| {
            json!({
                "name": name,
                "type": cells,
                "format": if *name == "Name" { "name" } else { "" },
                "description": "",
                "priority": priority,
            })
        })
        .collect()
}
