//! The scale of an object, as `autoscaling/v1`.

use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::managed_fields::to_subresource;
use kube_test_control_plane_api::members::{object_mut, set_or_remove};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::selectors::selector_text;
use serde_json::{Value, json};

/// Returns the scale of an object.
pub(crate) fn scale_of(kind: &Kind, object: &Draft) -> Value {
    if let Some(scale) = kind.scale() {
        return scale.of_object(&object.value);
    }
    let number = |pointer: &str| {
        let value = object.value.pointer(pointer).and_then(Value::as_i64);
        value.unwrap_or(0)
    };
    let metadata = object.metadata();
    let selector = object.value.pointer("/spec/selector");
    // A replication controller's selector is a plain map of labels.
    let selector = if object.value.get("kind") == Some(&json!("ReplicationController")) {
        selector_text(
            selector
                .map(|labels| json!({"matchLabels": labels}))
                .as_ref(),
        )
    } else {
        selector_text(selector)
    };
    // Zero is omitted from the spec, not from the status.
    let replicas = number("/spec/replicas");
    let spec = match replicas {
        0 => json!({}),
        replicas => json!({"replicas": replicas}),
    };
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata.name(),
            "namespace": metadata.namespace(),
            "uid": metadata.uid(),
            "resourceVersion": metadata.resource_version(),
            "creationTimestamp": metadata.text("creationTimestamp"),
        },
        "spec": spec,
        "status": {
            "replicas": number("/status/replicas"),
            "selector": selector,
        },
    })
}

/// Returns the scale of an object with the managers of its fields.
pub(crate) fn live_scale(kind: &Kind, object: &Draft) -> Value {
    let mut scale = scale_of(kind, object);
    let managed = to_subresource(kind, object.value.pointer("/metadata/managedFields"));
    set_or_remove(
        object_mut(&mut scale, "metadata"),
        "managedFields",
        Some(managed),
    );
    scale
}
