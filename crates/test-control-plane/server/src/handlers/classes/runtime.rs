//! Runtime classes of pods.

use kube_test_control_plane_api::defaults;
use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::Value;

use crate::state::Reads;

/// Completes a pod by its runtime class.
///
/// # Errors
///
/// The class is missing or contradicts the pod.
pub(crate) fn admit_runtime_class(reads: &Reads, kind: &Kind, draft: &mut Draft) -> ApiResult<()> {
    let Some(class) = class_of(reads, kind, draft)? else {
        return Ok(());
    };
    defaults::admit_runtime_class(&mut draft.value, &class)
        .map_err(|why| ApiError::forbidden(kind, draft.metadata().name(), &why))
}

/// Checks the overhead of a valid pod.
///
/// # Errors
///
/// The pod has another overhead than its class.
pub(crate) fn check_overhead(reads: &Reads, kind: &Kind, draft: &Draft) -> ApiResult<()> {
    if &*kind.storage != "pods" {
        return Ok(());
    }
    let class = class_of(reads, kind, draft)?;
    defaults::check_overhead(&draft.value, class.as_ref())
        .map_err(|why| ApiError::forbidden(kind, draft.metadata().name(), &why))
}

/// Returns the class of a pod, if it names one.
///
/// Upstream: `prepareObjects`
fn class_of(reads: &Reads, kind: &Kind, draft: &Draft) -> ApiResult<Option<Value>> {
    let name = draft.text("/spec/runtimeClassName");
    let Some(name) = name.filter(|_| &*kind.storage == "pods") else {
        return Ok(None);
    };
    if name.is_empty() {
        return Err(ApiError::internal("resource name may not be empty"));
    }
    let classes = kinds::by_storage("runtimeclasses");
    let class = classes.and_then(|classes| reads.store.get(&Key::new(classes, "", name)));
    let class = class.ok_or_else(|| {
        let why = format!("pod rejected: RuntimeClass {name:?} not found");
        ApiError::forbidden(kind, draft.metadata().name(), &why)
    })?;
    Ok(Some(class.value()))
}
