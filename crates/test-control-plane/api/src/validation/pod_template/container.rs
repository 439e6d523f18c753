//! Rules of containers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::probe::{lifecycle, probes};
use super::{Errors, env, identifier, label, list, number, one_of, required, resources, text};
use crate::validation::{FieldError, at, names};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];

/// The members that only long-running containers can have.
const NOT_FOR_INIT: [&str; 4] = [
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
];

/// A validator for a pod's containers.
pub(super) struct Containers<'a> {
    volumes: &'a BTreeSet<&'a str>,
    names: BTreeSet<&'a str>,
}

impl<'a> Containers<'a> {
    /// Returns a validator for containers that can mount these volumes.
    pub(super) fn new(volumes: &'a BTreeSet<&'a str>) -> Self {
        let names = BTreeSet::new();
        Self { volumes, names }
    }

    pub(super) fn validate(mut self, spec: &'a Value, path: &str, errors: &mut Errors) {
        if list(spec, "containers").next().is_none() {
            errors.push(FieldError::required(format!("{path}.containers"), ""));
        }
        for (i, container) in list(spec, "containers").enumerate() {
            let path = format!("{path}.containers[{i}]");
            self.common(container, &path, errors);
            self.unique(container, &path, errors);
            lifecycle(container, &path, errors);
            probes(container, &path, errors);
        }
        let used = list(spec, "containers").flat_map(|container| list(container, "ports"));
        host_ports(used, &format!("{path}.containers"), errors);
        for (i, container) in list(spec, "initContainers").enumerate() {
            let path = format!("{path}.initContainers[{i}]");
            self.common(container, &path, errors);
            self.unique(container, &path, errors);
            if text(container, "restartPolicy") == "Always" {
                lifecycle(container, &path, errors);
                probes(container, &path, errors);
                continue;
            }
            for member in NOT_FOR_INIT {
                if at(container, &format!("/{member}")).is_some() {
                    let detail = "may not be set for init containers without restartPolicy=Always";
                    errors.push(FieldError::forbidden(format!("{path}.{member}"), detail));
                }
            }
        }
    }

    /// Upstream: `validateContainerCommon`.
    fn common(&self, container: &Value, path: &str, errors: &mut Errors) {
        let name = text(container, "name");
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else {
            label(name, &format!("{path}.name"), errors);
        }
        required(container, "image", path, errors);
        let member = "terminationMessagePolicy";
        one_of(container, member, &MESSAGE_POLICIES, path, errors);
        ports(container, path, errors);
        env::validate(container, path, errors);
        env::sources(container, path, errors);
        self.mounts(container, path, errors);
        for (i, device) in list(container, "volumeDevices").enumerate() {
            let path = format!("{path}.volumeDevices[{i}]");
            required(device, "name", &path, errors);
            required(device, "devicePath", &path, errors);
        }
        resize_policy(container, path, errors);
        one_of(container, "imagePullPolicy", &PULL_POLICIES, path, errors);
        resources::validate(container, path, errors);
        if let Some(context) = at(container, "/securityContext") {
            for member in ["runAsUser", "runAsGroup"] {
                identifier(context, member, &format!("{path}.securityContext"), errors);
            }
        }
    }

    fn unique(&mut self, container: &'a Value, path: &str, errors: &mut Errors) {
        let name = text(container, "name");
        if !name.is_empty() && !self.names.insert(name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), &json!(name)));
        }
    }

    /// Upstream: `ValidateVolumeMounts`.
    fn mounts(&self, container: &Value, path: &str, errors: &mut Errors) {
        let mut paths = BTreeSet::new();
        for (i, mount) in list(container, "volumeMounts").enumerate() {
            let path = format!("{path}.volumeMounts[{i}]");
            let name = text(mount, "name");
            required(mount, "name", &path, errors);
            if !self.volumes.contains(name) {
                errors.push(FieldError::not_found(format!("{path}.name"), &json!(name)));
            }
            required(mount, "mountPath", &path, errors);
            let mount_path = text(mount, "mountPath");
            if !paths.insert(mount_path) {
                let field = format!("{path}.mountPath");
                errors.push(FieldError::invalid(
                    field,
                    &json!(mount_path),
                    "must be unique",
                ));
            }
            let sub_path = text(mount, "subPath");
            if !sub_path.is_empty() && !text(mount, "subPathExpr").is_empty() {
                let field = format!("{path}.subPathExpr");
                let detail = "subPathExpr and subPath are mutually exclusive";
                errors.push(FieldError::invalid(field, &mount["subPathExpr"], detail));
            }
            for member in ["subPath", "subPathExpr"] {
                descending(text(mount, member), &format!("{path}.{member}"), errors);
            }
        }
    }
}

/// Rejects absolute paths and paths with `..`.
///
/// Upstream: `validateLocalDescendingPath`.
fn descending(path: &str, field: &str, errors: &mut Errors) {
    if path.starts_with('/') {
        errors.push(FieldError::invalid(
            field,
            &json!(path),
            "must be a relative path",
        ));
    }
    if path.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(
            field,
            &json!(path),
            "must not contain '..'",
        ));
    }
}

/// Upstream: `validateContainerPorts`.
fn ports(container: &Value, path: &str, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (i, port) in list(container, "ports").enumerate() {
        let path = format!("{path}.ports[{i}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let field = format!("{path}.name");
            let wrong = names::port_name(name);
            for message in &wrong {
                errors.push(FieldError::invalid(field.as_str(), &json!(name), message));
            }
            if wrong.is_empty() && !seen.insert(name) {
                errors.push(FieldError::duplicate(field, &json!(name)));
            }
        }
        match number(port, "containerPort").unwrap_or(0) {
            0 => errors.push(FieldError::required(format!("{path}.containerPort"), "")),
            number => port_number(number, &format!("{path}.containerPort"), errors),
        }
        let host = number(port, "hostPort").unwrap_or(0);
        if host != 0 {
            port_number(host, &format!("{path}.hostPort"), errors);
        }
        one_of(port, "protocol", &PROTOCOLS, &path, errors);
    }
}

/// Rejects an invalid port number.
pub(super) fn port_number(number: i64, field: &str, errors: &mut Errors) {
    if !(1..=65535).contains(&number) {
        let detail = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(field, &json!(number), detail));
    }
}

/// Upstream: `checkHostPortConflicts`.
fn host_ports<'a>(ports: impl Iterator<Item = &'a Value>, field: &str, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in ports {
        let number = number(port, "hostPort").unwrap_or(0);
        let (protocol, ip) = (text(port, "protocol"), text(port, "hostIP"));
        if number != 0 && !seen.insert((protocol, ip, number)) {
            let used = format!("{protocol}/{ip}/{number}");
            errors.push(FieldError::duplicate(field, &json!(used)));
        }
    }
}

/// Upstream: `validateResizePolicy`.
fn resize_policy(container: &Value, path: &str, errors: &mut Errors) {
    const KNOWN: [(&str, &[&str]); 2] = [
        ("resourceName", &["cpu", "memory"]),
        ("restartPolicy", &["NotRequired", "RestartContainer"]),
    ];
    for (i, policy) in list(container, "resizePolicy").enumerate() {
        for (member, known) in KNOWN {
            let value = text(policy, member);
            if !known.contains(&value) {
                let field = format!("{path}.resizePolicy[{i}].{member}");
                errors.push(FieldError::not_supported(field, &json!(value), known));
            }
        }
    }
}
