//! Defaults of containers, init containers and ephemeral containers.

use super::member::Object;
use super::member::child;
use super::member::elements;
use super::member::round_up_resources;
use super::member::set_if_absent;
use super::member::set_if_zero;
use super::member::text;
use crate::image::default_pull_policy;

/// Sets the defaults of a container, init container or ephemeral container.
///
/// Upstream: `SetDefaults_Container`.
pub(super) fn set_container_defaults(container: &mut Object) {
    let pull_policy = default_pull_policy(text(container, "image"));
    set_if_zero(container, "imagePullPolicy", pull_policy);
    set_if_zero(container, "terminationMessagePath", "/dev/termination-log");
    set_if_zero(container, "terminationMessagePolicy", "File");
    for port in elements(container, "ports") {
        set_if_zero(port, "protocol", "TCP");
    }
    for variable in elements(container, "env") {
        if let Some(source) = child(variable, "valueFrom") {
            set_field_ref_defaults(source);
            if let Some(file_key) = child(source, "fileKeyRef") {
                set_if_absent(file_key, "optional", false);
            }
        }
    }
    round_up_resources(container, "resources");
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = child(container, probe) {
            set_probe_defaults(probe);
        }
    }
    if let Some(lifecycle) = child(container, "lifecycle") {
        for handler in ["postStart", "preStop"] {
            if let Some(handler) = child(lifecycle, handler) {
                set_http_get_defaults(handler);
            }
        }
    }
}

/// Sets the defaults of a field `fieldRef`.
///
/// Upstream: `SetDefaults_ObjectFieldSelector`.
pub(super) fn set_field_ref_defaults(source: &mut Object) {
    if let Some(field) = child(source, "fieldRef") {
        set_if_zero(field, "apiVersion", "v1");
    }
}

/// Upstream: `SetDefaults_Probe`.
fn set_probe_defaults(probe: &mut Object) {
    set_if_zero(probe, "timeoutSeconds", 1);
    set_if_zero(probe, "periodSeconds", 10);
    set_if_zero(probe, "successThreshold", 1);
    set_if_zero(probe, "failureThreshold", 3);
    set_http_get_defaults(probe);
    if let Some(grpc) = child(probe, "grpc") {
        set_if_absent(grpc, "service", "");
    }
}

/// Upstream: `SetDefaults_HTTPGetAction`.
fn set_http_get_defaults(handler: &mut Object) {
    if let Some(get) = child(handler, "httpGet") {
        set_if_zero(get, "path", "/");
        set_if_zero(get, "scheme", "HTTP");
    }
}
