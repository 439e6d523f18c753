//! Progress of the repair of a pod.

/// Steps that earlier attempts to repair a pod have completed.
#[derive(Default)]
pub(super) struct Progress {
    /// A write of the pod was attempted.
    pub(super) wrote: bool,
    /// The pod's claims were created after its last write, though the cache may not show them yet.
    pub(super) claims_created: bool,
}
