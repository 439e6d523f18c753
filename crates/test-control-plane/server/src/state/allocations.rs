//! Allocated service addresses and ports.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

use kube_test_control_plane_api::object::Key;

/// The owner of each address and port. A deleted service's entry stays until its address or port is
/// allocated again.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    pub(crate) addresses: BTreeMap<Ipv4Addr, Key>,
    pub(crate) ports: BTreeMap<i64, Key>,
    pub(crate) next_address: u32,
    pub(crate) next_port: i64,
    /// The services that are about to be stored, and how many requests do.
    reserved: BTreeMap<Key, usize>,
}

impl Allocations {
    /// Reports whether a service that is about to be stored may have what it was given.
    pub(crate) fn is_reserved(&self, service: &Key) -> bool {
        self.reserved.contains_key(service)
    }
}

/// Keeps the addresses and ports of a service from others until it is stored.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    allocations: &'a Mutex<Allocations>,
    service: Key,
}

impl<'a> Reservation<'a> {
    /// Reserves what a service was given; `locked` is the locked value.
    pub(crate) fn new(
        allocations: &'a Mutex<Allocations>,
        locked: &mut Allocations,
        service: &Key,
    ) -> Self {
        *locked.reserved.entry(service.clone()).or_default() += 1;
        Self {
            allocations,
            service: service.clone(),
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let allocations = self.allocations.lock();
        let mut allocations = allocations.unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = allocations.reserved.get_mut(&self.service) {
            *count -= 1;
            if *count == 0 {
                allocations.reserved.remove(&self.service);
            }
        }
    }
}
