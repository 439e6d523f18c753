//! Allocation of service addresses and ports.

mod addresses;
mod ports;
mod refusal;

use kube_test_control_plane_api::kinds::Kind;
use kube_test_control_plane_api::members::object_mut;
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::status::{ApiError, ApiResult};

use refusal::Refusal;

use crate::state::{Reservation, Writes};

/// Allocates missing addresses and ports to a service before it is stored. The reservation
/// keeps them from other services until the service is stored. A dry run allocates nothing: it shows
/// made-up addresses and ports.
///
/// # Errors
///
/// 422 if another service has a requested address or port, or if it is out of range. 500 if all
/// addresses or node ports are taken.
///
/// Upstream: `allocateCreate`, `allocateUpdate`
pub(crate) fn allocate<'a>(
    writes: &'a Writes,
    kind: &Kind,
    key: &Key,
    draft: &mut Draft,
    old: Option<&Draft>,
    dry_run: bool,
) -> ApiResult<Option<Reservation<'a>>> {
    if &*kind.storage != "services" {
        return Ok(None);
    }
    let mut guard = writes.lock_allocations();
    let old = old.map(|old| &old.value["spec"]);
    object_mut(&mut draft.value, "spec");
    let spec = &mut draft.value["spec"];
    addresses::allocate(writes, &mut guard, key, (spec, old), dry_run)
        .and_then(|()| ports::allocate(&writes.reads, &mut guard, key, (spec, old), dry_run))
        .map_err(|refusal| match refusal {
            Refusal::Field(error) => ApiError::invalid(kind, &key.name, &[error]),
            Refusal::Internal(why) => ApiError::internal_error(&why),
            Refusal::Plain(why) => ApiError::internal(why),
        })?;
    Ok(Some(writes.reserve(&mut guard, key)))
}
