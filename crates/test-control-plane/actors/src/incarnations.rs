//! Which object of its name an object is. Draws are named by that, so that neither uids nor what
//! others do shifts them.

use std::collections::BTreeMap;

use kube_test_control_plane_api::object::{Key, Object};

use super::client::ActorClient;

/// How many names are kept before those are forgotten that no object has.
const NAMES_MAX: usize = 100_000;

/// How many objects of each name there have been.
#[derive(Debug, Default)]
pub(super) struct Incarnations {
    /// The uid of the newest one, and which one that is.
    names: BTreeMap<Key, (Box<str>, u32)>,
}

impl Incarnations {
    /// Which object of its name it is, counted from 1.
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

/// What the draws for an object are named by.
pub(super) fn identity(key: &Key, nth: u32) -> String {
    format!("{}/{}/{}/{nth}", key.storage, key.namespace, key.name)
}
