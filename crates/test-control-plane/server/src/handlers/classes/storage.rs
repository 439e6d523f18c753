//! Storage classes of claims: defaulting and expansion.

use std::cmp::Reverse;

use kube_apimachinery::quantity::Quantity;
use kube_test_control_plane_api::defaults::is_default;
use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::members::{object_mut, text_at};
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use crate::state::Reads;

/// The legacy annotation with a claim's class.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Sets the default class on a claim without one: the newest default, then the first by name.
///
/// Upstream: the admission plugin `DefaultStorageClass`
pub(crate) fn admit_storage_class(reads: &Reads, kind: &Kind, draft: &mut Draft) {
    if &*kind.storage != "persistentvolumeclaims" {
        return;
    }
    let is_named = draft.value.pointer("/spec/storageClassName").is_some()
        || draft.metadata().annotation(BETA_CLASS).is_some();
    if is_named {
        return;
    }
    let (_, classes) = reads.store.list("storageclasses", "");
    let marked = classes
        .iter()
        .map(|class| class.value())
        .filter(is_default)
        .min_by_key(|class| {
            let text = |pointer: &str| text_at(class, pointer).to_owned();
            let created = Reverse(text("/metadata/creationTimestamp"));
            (created, text("/metadata/name"))
        });
    if let Some(class) = marked {
        let name = json!(text_at(&class, "/metadata/name"));
        object_mut(&mut draft.value, "spec").insert("storageClassName".to_owned(), name);
    }
}

/// Rejects the expansion of a claim unless its class allows it.
///
/// Upstream: the admission plugin `PersistentVolumeClaimResize`
pub(crate) fn admit_resize(reads: &Reads, kind: &Kind, old: &Draft, new: &Draft) -> ApiResult<()> {
    if &*kind.storage != "persistentvolumeclaims" || !grows(&old.value, &new.value) {
        return Ok(());
    }
    let forbidden = |why| Err(ApiError::forbidden(kind, new.metadata().name(), why));
    if old.text("/status/phase") != Some("Bound") {
        return forbidden("Only bound persistent volume claims can be expanded");
    }
    let class = class_of(new);
    if class.is_empty() || class != class_of(old) || !allows_expansion(reads, class) {
        return forbidden(
            "only dynamically provisioned pvc can be resized and the storageclass that \
             provisions the pvc must support resize",
        );
    }
    Ok(())
}

fn allows_expansion(reads: &Reads, class: &str) -> bool {
    let class = kinds::by_storage("storageclasses")
        .and_then(|kind| reads.store.get(&Key::new(kind, "", class)));
    class.is_some_and(|class| class.value()["allowVolumeExpansion"] == true)
}

/// Reports whether a claim requests more storage than before.
fn grows(old: &Value, new: &Value) -> bool {
    let size = |claim: &Value| {
        let size = text_at(claim, "/spec/resources/requests/storage");
        size.parse::<Quantity>().unwrap_or_default()
    };
    size(new) > size(old)
}

/// Returns the class of a claim, from the field or the annotation.
///
/// Upstream: `GetPersistentVolumeClaimClass`
fn class_of(claim: &Draft) -> &str {
    let beta = claim.metadata().annotation(BETA_CLASS);
    let class = beta.or_else(|| claim.text("/spec/storageClassName"));
    class.unwrap_or_default()
}
