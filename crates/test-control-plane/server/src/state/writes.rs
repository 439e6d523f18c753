//! State for writes: the store, and the parts that admit and complete an object.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_store::store::Store;

use super::access::Access;
use super::allocations::{Allocations, Reservation};
use super::random::Random;
use super::reads::Reads;
use crate::admission::AdmissionHooks;
use crate::config::ServiceRange;

/// The stored objects, to be changed.
#[derive(Debug)]
pub(crate) struct Writes {
    pub(crate) store: Store,
    pub(crate) reads: Arc<Reads>,
    pub(crate) access: Arc<Access>,
    pub(crate) random: Arc<Random>,
    pub(crate) admission: AdmissionHooks,
    /// False if writes are stored without validation.
    pub(crate) validates: bool,
    pub(crate) service_range: ServiceRange,
    /// The certificates of the server, for pods, if pods get service accounts.
    pub(crate) service_accounts: Option<OnceLock<String>>,
    pub(super) allocations: Mutex<Allocations>,
}

impl Writes {
    /// Locks the allocations of services.
    pub(crate) fn lock_allocations(&self) -> MutexGuard<'_, Allocations> {
        let allocations = self.allocations.lock();
        allocations.unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves what a service was given in the locked allocations.
    pub(crate) fn reserve(&self, locked: &mut Allocations, service: &Key) -> Reservation<'_> {
        Reservation::new(&self.allocations, locked, service)
    }
}
