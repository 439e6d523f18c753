//! Rules of containers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::members::{list, text};
use crate::status::FieldError;
use crate::validation::place::{Errors, Place};
use crate::validation::rules;

/// A validator for a pod's containers.
pub(super) struct Containers<'a> {
    volumes: &'a BTreeSet<&'a str>,
    names: BTreeSet<String>,
}

impl<'a> Containers<'a> {
    /// Returns a validator for containers that can mount these volumes.
    pub(super) fn new(volumes: &'a BTreeSet<&'a str>) -> Self {
        let names = BTreeSet::new();
        Self { volumes, names }
    }

    pub(super) fn validate(mut self, spec: &Place<'_>, errors: &mut Errors) {
        let containers = spec.member("containers");
        if containers.is_empty() {
            errors.push(containers.required(""));
        }
        for container in containers.elements() {
            self.common(&container, errors);
            rules::check("Container/running", &container, errors);
        }
        host_ports(&containers, errors);
        for container in spec.member("initContainers").elements() {
            self.common(&container, errors);
            let block = match container.text_of("restartPolicy") {
                "Always" => "Container/running",
                _ => "Container/init",
            };
            rules::check(block, &container, errors);
        }
    }

    /// Upstream: `validateContainerCommon`.
    fn common(&mut self, container: &Place<'_>, errors: &mut Errors) {
        rules::check("Container", container, errors);
        self.mounts(&container.member("volumeMounts"), errors);
        rules::check("Container/rest", container, errors);
        let name = container.member("name");
        if !name.is_empty() && !self.names.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }

    /// Upstream: `ValidateVolumeMounts`.
    fn mounts(&self, mounts: &Place<'_>, errors: &mut Errors) {
        let mut paths = BTreeSet::new();
        for mount in mounts.elements() {
            let [name, path] = ["name", "mountPath"].map(|member| mount.member(member));
            if name.is_empty() {
                errors.push(name.required(""));
            }
            if !self.volumes.contains(name.text()) {
                errors.push(FieldError::not_found(name.path(), &json!(name.text())));
            }
            if path.is_empty() {
                errors.push(path.required(""));
            }
            if !paths.insert(mount.text_of("mountPath")) {
                path.invalid_for(["must be unique"], errors);
            }
            rules::check("VolumeMount", &mount, errors);
        }
    }
}

/// Upstream: `checkHostPortConflicts`.
fn host_ports(containers: &Place<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let containers_of = list_of(containers.value);
    for port in containers_of.flat_map(|container| list(container, "ports")) {
        let number = port["hostPort"].as_i64().unwrap_or_default();
        let (protocol, ip) = (text(port, "protocol"), text(port, "hostIP"));
        if number != 0 && !seen.insert((protocol, ip, number)) {
            let used = format!("{protocol}/{ip}/{number}");
            errors.push(FieldError::duplicate(containers.path(), &json!(used)));
        }
    }
}

fn list_of(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
