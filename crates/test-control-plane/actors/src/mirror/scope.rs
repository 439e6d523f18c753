//! Which objects are mirrored: in a cluster that others use too, only those of the test.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use kube_test_control_plane_api::kinds::Kind;

/// A set of namespaces that grows while it is used.
#[derive(Clone, Debug, Default)]
pub struct Namespaces(Arc<Mutex<BTreeSet<String>>>);

impl Namespaces {
    /// The set.
    pub fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which objects actors see.
#[derive(Clone, Debug)]
pub enum Scope {
    /// Every object.
    Cluster,
    /// What is in these namespaces, with their volumes, and the nodes.
    Namespaces(Namespaces),
}

impl Scope {
    /// Whether an object is one of them.
    pub(super) fn holds(&self, kind: &Kind, object: &Value) -> bool {
        let Self::Namespaces(namespaces) = self else {
            return true;
        };
        let pointer = match kind.storage {
            "nodes" => return true,
            "namespaces" => "/metadata/name",
            "persistentvolumes" => "/spec/claimRef/namespace",
            _ => "/metadata/namespace",
        };
        let namespace = object.pointer(pointer).and_then(Value::as_str);
        namespace.is_some_and(|name| namespaces.names().contains(name))
    }
}
