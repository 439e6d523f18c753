//! Numbers of objects that share a name. Draws use them instead of uids, so that other clients'
//! actions don't change the draws.

use std::collections::BTreeMap;

use kube_test_control_plane_api::object::{Key, Object};

use super::client::ActorClient;

/// Names kept before those without an object are dropped.
const NAMES_MAX: usize = 100_000;

/// Number of objects so far by name.
#[derive(Debug, Default)]
pub(super) struct Incarnations {
    /// The uid and number of the newest object of each name.
    names: BTreeMap<Key, (Box<str>, u32)>,
}

impl Incarnations {
    /// Returns the object's number among those of its name, counted from 1.
    pub(super) fn count(&mut self, object: &Object, client: &ActorClient) -> u32 {
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(&object.key) {
            self.names.retain(|key, _| client.get(key).is_some());
        }
        let (uid, nth) = self.names.entry(object.key.clone()).or_default();
        if *uid != object.uid {
            uid.clone_from(&object.uid);
            *nth += 1;
        }
        *nth
    }
}

/// Returns the name under which an object's random numbers are drawn.
pub(super) fn identity(key: &Key, nth: u32) -> String {
    format!("{}/{}/{}/{nth}", key.storage, key.namespace, key.name)
}
