//! Rollback of an API server to a version with older types, and its upgrade.

use kube_apimachinery::schema::{drop_unknown_members, type_of_kind};
use kube_test_control_plane::kinds;
use kube_test_control_plane::restart::Restart;
use kube_test_control_plane::store::{Draft, Expect, Key};
use kube_test_control_plane::{ApiServer, EmulatedVersion, ServerGates, UnknownFields};

/// Objects whose newer fields an older server hides. The fields stay in storage until that server
/// writes the object.
#[must_use]
pub struct RolledBack {
    newer: Newer,
    hidden: Vec<Hidden>,
}

/// The newer server.
struct Newer {
    unknown_fields: UnknownFields,
    version: EmulatedVersion,
    gates: ServerGates,
}

struct Hidden {
    key: Key,
    /// Resource version of the object in the older server.
    shown: u64,
    stored: Draft,
}

impl RolledBack {
    /// Replaces `server` with one of v1.36.2, which doesn't know the newer fields: it neither shows
    /// nor stores them.
    ///
    /// # Panics
    ///
    /// Panics if something else writes meanwhile.
    pub fn from(server: &ApiServer) -> Self {
        let newer = Newer {
            unknown_fields: server.unknown_fields(),
            version: server.emulated_version(),
            gates: server.feature_gates(),
        };
        server.set_unknown_fields(UnknownFields::Prune);
        let older = EmulatedVersion::V1_36;
        if newer.version > older {
            server.set_emulated_version(older, ServerGates::at(older));
        }
        let mut hidden = Vec::new();
        for object in server.store().all().1 {
            let stored = object.draft();
            let mut shown = stored.clone();
            if drop_newer_fields(&mut shown) {
                let shown = put(server, &object.key, object.resource_version, shown);
                let key = object.key.clone();
                hidden.push(Hidden { key, shown, stored });
            }
        }
        server.restart(Restart::default());
        Self { newer, hidden }
    }

    /// Number of objects with hidden fields.
    pub fn count(&self) -> usize {
        self.hidden.len()
    }

    /// Restarts the newer server: it shows the newer fields of the objects that weren't written
    /// meanwhile. Returns their number.
    ///
    /// # Panics
    ///
    /// Panics if something else writes meanwhile.
    pub fn upgrade(self, server: &ApiServer) -> usize {
        let Newer {
            unknown_fields,
            version,
            gates,
        } = self.newer;
        server.set_unknown_fields(unknown_fields);
        server.set_emulated_version(version, gates);
        let mut count = 0;
        for Hidden { key, shown, stored } in self.hidden {
            let is_as_shown = |version: u64| version == shown;
            let current = server.store().get(&key);
            if current.is_some_and(|object| is_as_shown(object.resource_version)) {
                put(server, &key, shown, stored);
                count += 1;
            }
        }
        server.restart(Restart::default());
        count
    }
}

fn drop_newer_fields(draft: &mut Draft) -> bool {
    let text = |member: &str| draft.value[member].as_str().unwrap_or("").to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    type_of_kind(&api_version, &kind)
        .is_some_and(|found| drop_unknown_members(found.name, &mut draft.value))
}

/// Writes an object, bypassing all write checks; returns its version.
fn put(server: &ApiServer, key: &Key, version: u64, draft: Draft) -> u64 {
    let kind = kinds::by_storage(&key.storage).expect("the object's kind is known");
    let written = server
        .store()
        .put(kind, key.clone(), Expect::Version(version), draft);
    written
        .expect("no writes while the server is replaced")
        .resource_version
}
