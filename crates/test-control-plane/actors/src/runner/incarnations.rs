//! A count of the objects with the same name. Random draws are named by this count, so that neither
//! uids nor concurrent work shift them.

use std::collections::BTreeMap;

use kube_test_control_plane_api::object::{Key, Object};

use crate::client::ActorClient;

/// Limit of tracked names. Above it, names without an object are dropped.
const NAMES_MAX: usize = 100_000;

/// Number of objects seen under each name.
#[derive(Debug, Default)]
pub(crate) struct Incarnations {
    /// The uid and the number of the newest object with each name.
    names: BTreeMap<Key, (Box<str>, u32)>,
}

impl Incarnations {
    /// Returns the object's number among those with its name, from 1.
    pub(crate) fn count(&mut self, object: &Object, client: &ActorClient) -> u32 {
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

/// Returns the name of the draws for an object.
pub(crate) fn identity(key: &Key, nth: u32) -> String {
    format!("{}/{}/{}/{nth}", key.storage, key.namespace, key.name)
}
