//! Allocated service addresses and ports.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use kube_test_control_plane_api::object::Key;

/// The owner of each address and port. A deleted service's entry stays until its address or port is
/// allocated again.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    pub(crate) addresses: BTreeMap<Ipv4Addr, Key>,
    pub(crate) ports: BTreeMap<i64, Key>,
    pub(crate) next_address: u32,
    pub(crate) next_port: i64,
}
