//! Defaults of pods and pod templates.

use serde_json::Map;
use serde_json::Value;

use super::container::set_container_defaults;
use super::member::Object;
use super::member::child;
use super::member::child_or_new;
use super::member::elements;
use super::member::is_zero;
use super::member::round_up_quantities;
use super::member::round_up_resources;
use super::member::set_if_absent;
use super::member::set_if_zero;
use super::volume::set_volume_defaults;

/// Sets the defaults of a pod template.
///
/// Some defaults apply to pods only: see [`set_pod_defaults`].
///
/// Upstream: `SetObjectDefaults_PodTemplate`.
pub fn set_pod_template_defaults(template: &mut Value) {
    if let Some(template) = template.as_object_mut() {
        set_template_object_defaults(template);
    }
}

/// Sets the defaults of a pod: those of a template, requests from limits, `enableServiceLinks`, and
/// host ports for a pod in the host's network. Defaults from admission plugins are out of scope.
///
/// Upstream: `SetObjectDefaults_Pod`.
pub fn set_pod_defaults(pod: &mut Value) {
    let Some(spec) = pod
        .as_object_mut()
        .and_then(|pod| child_or_new(pod, "spec"))
    else {
        return;
    };
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for containers in ["containers", "initContainers"] {
        for container in elements(spec, containers) {
            set_requests_from_limits(container);
            if host_network {
                set_host_ports(container);
            }
        }
    }
    set_if_absent(spec, "enableServiceLinks", true);
    set_pod_spec_defaults(spec);
}

/// Sets the defaults of a pod template inside another object.
pub(super) fn set_template_object_defaults(template: &mut Object) {
    if let Some(spec) = child_or_new(template, "spec") {
        set_pod_spec_defaults(spec);
    }
}

/// Upstream: `SetDefaults_PodSpec`, and the defaults of its parts.
fn set_pod_spec_defaults(spec: &mut Object) {
    set_if_zero(spec, "dnsPolicy", "ClusterFirst");
    set_if_zero(spec, "restartPolicy", "Always");
    set_if_absent(spec, "securityContext", Map::new());
    set_if_absent(spec, "terminationGracePeriodSeconds", 30);
    set_if_zero(spec, "schedulerName", "default-scheduler");
    elements(spec, "volumes").for_each(set_volume_defaults);
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        elements(spec, containers).for_each(set_container_defaults);
    }
    round_up_quantities(spec, "overhead");
    round_up_resources(spec, "resources");
}

/// Copies limits to missing requests.
fn set_requests_from_limits(container: &mut Object) {
    let Some(resources) = child(container, "resources") else {
        return;
    };
    let limits = child(resources, "limits").cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    if let Some(requests) = child_or_new(resources, "requests") {
        for (resource, limit) in limits {
            requests.entry(resource).or_insert(limit);
        }
    }
}

/// Copies container ports to missing host ports.
fn set_host_ports(container: &mut Object) {
    for port in elements(container, "ports") {
        if is_zero(port, "hostPort") && !is_zero(port, "containerPort") {
            let container_port = port["containerPort"].clone();
            port.insert(String::from("hostPort"), container_port);
        }
    }
}
