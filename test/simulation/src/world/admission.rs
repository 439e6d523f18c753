//! Admission of new pods and sets, which faults change.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kube_test_control_plane::ApiServer;
use kube_test_control_plane::admission::{AdmissionHook, AdmissionRequest, Denial, Operation};
use serde_json::{Value, json};

/// The field of pod specs that only the newer API server knows.
pub const NEW_MEMBER: &str = "flavor";

/// JSON pointer of the spec in a pod template.
pub(super) const TEMPLATE_SPEC: &str = "/spec/template/spec";

/// Limits of new pods, read by an admission hook.
#[derive(Default)]
pub(super) struct Admission {
    pub(super) denies: AtomicBool,
    /// Image of the pods that are denied; none if empty.
    pub(super) denied_image: Mutex<String>,
    /// True if new pods get a further container and toleration.
    pub(super) mutates: AtomicBool,
    /// True if the API server knows and sets a further field of templates.
    pub(super) newer: AtomicBool,
    /// Number of pods that may exist; no limit if zero.
    pub(super) quota: AtomicUsize,
}

impl Admission {
    /// Denies pods of this image; of none if empty.
    pub(super) fn deny_image(&self, image: &str) {
        let denied = self.denied_image.lock();
        image.clone_into(&mut denied.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Denies new pods while a fault says so, with the messages of webhooks and quotas.
pub(super) fn pod_limits(
    admission: Arc<Admission>,
    server: ApiServer,
) -> impl AdmissionHook + 'static {
    move |request: &mut AdmissionRequest<'_>| {
        let creates = request.operation == Operation::Create && request.subresource.is_empty();
        if !creates || &*request.kind.storage != "pods" {
            return Ok(());
        }
        if admission.denies.load(Ordering::Relaxed) {
            return Err(Denial::Webhook("no pods now".to_owned()));
        }
        let quota = admission.quota.load(Ordering::Relaxed);
        if quota > 0 && server.store().list("pods", request.namespace).1.len() >= quota {
            return Err(Denial::Forbidden("exceeded quota: pods".to_owned()));
        }
        Ok(())
    }
}

/// Denies new pods of an image, and changes others as injectors of sidecars do.
pub(super) fn pod_images(admission: Arc<Admission>) -> impl AdmissionHook + 'static {
    move |request: &mut AdmissionRequest<'_>| {
        let creates = request.operation == Operation::Create && request.subresource.is_empty();
        if !creates || &*request.kind.storage != "pods" {
            return Ok(());
        }
        let image = request.object.pointer("/spec/containers/0/image");
        let image = image.and_then(Value::as_str).unwrap_or_default();
        let denied = admission.denied_image.lock();
        if denied.is_ok_and(|denied| !denied.is_empty() && *denied == image) {
            return Err(Denial::Webhook(format!("image {image} is not allowed")));
        }
        if admission.mutates.load(Ordering::Relaxed) {
            let additions = [
                (
                    "/spec/containers",
                    json!({"name": "proxy", "image": "proxy"}),
                ),
                ("/spec/tolerations", json!({"operator": "Exists"})),
            ];
            for (pointer, addition) in additions {
                if let Some(Value::Array(list)) = request.object.pointer_mut(pointer) {
                    list.push(addition);
                }
            }
        }
        Ok(())
    }
}

/// Adds the new field to a pod spec, or removes it. Returns true if that changed the spec.
pub(super) fn set_new_member(spec: &mut Value, newer: bool) -> bool {
    let Some(spec) = spec.as_object_mut() else {
        return false;
    };
    let has = spec.contains_key(NEW_MEMBER);
    if newer {
        spec.entry(NEW_MEMBER).or_insert_with(|| json!("plain"));
    } else {
        spec.remove(NEW_MEMBER);
    }
    has != newer
}

/// Sets the new field in the templates of sets while the API server knows it.
pub(super) fn new_defaults(admission: Arc<Admission>) -> impl AdmissionHook + 'static {
    move |request: &mut AdmissionRequest<'_>| {
        let is_newer = admission.newer.load(Ordering::Relaxed);
        if is_newer
            && *request.kind.storage == *"statefulsets"
            && let Some(spec) = request.object.pointer_mut(TEMPLATE_SPEC)
        {
            set_new_member(spec, true);
        }
        Ok(())
    }
}
