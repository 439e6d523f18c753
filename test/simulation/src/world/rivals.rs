//! Rivals: other writers of the sets' objects.

use std::time::Duration;

use kube_test_control_plane::ApiServer;
use kube_test_control_plane::store::Key;
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::user::{HOLD, NAMESPACE, User};

/// A writer that competes with the controllers.
pub(super) struct Rival {
    pub(super) server: ApiServer,
    pub(super) user: User,
    pub(super) random: StdRng,
    /// Time between two of its rounds.
    pub(super) every: Duration,
}

impl Rival {
    /// Updates an annotation on all objects of a resource at this interval, so that concurrent
    /// updates conflict.
    pub(super) async fn storm(self, storage: &'static str) {
        let mut round = 0;
        loop {
            round += 1;
            for name in self.names(storage) {
                let change = json!({"metadata": {"annotations": {"storm": round.to_string()}}});
                self.user.patch(storage, &name, &change).await;
            }
            sleep(self.every).await;
        }
    }

    /// Meddles with one object after the other.
    pub(super) async fn meddle(mut self) {
        loop {
            self.meddle_once().await;
            sleep(self.every).await;
        }
    }

    async fn meddle_once(&mut self) {
        let kind = self.random.random_range(0..KINDS.len());
        let (storage, change) = KINDS[kind];
        let names = self.names(storage);
        let Some(name) = names.choose(&mut self.random) else {
            return;
        };
        let change = change(&self.server);
        self.user.patch(storage, name, &change).await;
    }

    /// The names of the stored objects of a resource, in their order.
    fn names(&self, storage: &'static str) -> Vec<String> {
        let (_, stored) = self.server.store().list(storage, NAMESPACE);
        let names = stored.iter().map(|object| object.key.name.to_string());
        names.collect()
    }
}

/// A change of an object, as a strategic merge patch.
type Change = fn(&ApiServer) -> Value;

/// The changes that a meddling controller makes: labels, owners and finalizers that are ours to
/// restore, and such that are not.
const KINDS: [(&str, Change); 9] = [
    ("pods", |_| labels("example.com/zone", Some("a"))),
    ("pods", |_| {
        labels("statefulset.kubernetes.io/pod-name", None)
    }),
    ("pods", |_| labels("apps.kubernetes.io/pod-index", None)),
    (
        "pods",
        |_| json!({"metadata": {"ownerReferences": [{"$patch": "replace"}]}}),
    ),
    (
        "persistentvolumeclaims",
        |_| json!({"metadata": {"ownerReferences": [{"$patch": "replace"}]}}),
    ),
    (
        "persistentvolumeclaims",
        |server| json!({"metadata": {"ownerReferences": [backup(server, false)]}}),
    ),
    (
        "persistentvolumeclaims",
        |_| json!({"metadata": {"finalizers": [HOLD]}}),
    ),
    (
        "persistentvolumeclaims",
        |_| json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [HOLD]}}),
    ),
    (
        "controllerrevisions",
        |_| json!({"metadata": {"annotations": {"example.com/note": "x"}}}),
    ),
];

/// Name of the ConfigMap that owns claims besides the sets.
pub(super) const BACKUP: &str = "backup";

/// Returns a reference to the backup as an owner.
pub(super) fn backup(server: &ApiServer, controller: bool) -> Value {
    let key = Key::of("configmaps", NAMESPACE, BACKUP);
    let backup = server.store().get(&key).map(|stored| stored.value());
    let uid = backup.and_then(|backup| backup.pointer("/metadata/uid").cloned());
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": BACKUP,
        "uid": uid,
        "controller": controller,
    })
}

fn labels(label: &str, value: Option<&str>) -> Value {
    json!({"metadata": {"labels": {label: value}}})
}
