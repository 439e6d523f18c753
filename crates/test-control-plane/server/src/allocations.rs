//! Addresses and ports that services have been given.

use std::collections::BTreeMap;

use kube_test_control_plane_api::object::Key;

/// Who was given what. Services that are gone stay in it until what they had is wanted again.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    pub(crate) addresses: BTreeMap<u32, Key>,
    pub(crate) ports: BTreeMap<i64, Key>,
    pub(crate) next_address: u32,
    pub(crate) next_port: i64,
}
