//! The scope of the mirror: in a shared cluster, only the test's own objects.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use kube_test_control_plane_api::kinds::Kind;

/// A set of namespaces that may grow at run time.
#[derive(Clone, Debug, Default)]
pub struct Namespaces(Arc<Mutex<BTreeSet<String>>>);

impl Namespaces {
    /// Locks and returns the names.
    pub fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The objects that actors see.
#[derive(Clone, Debug)]
pub enum Scope {
    /// Every object.
    Cluster,
    /// Objects in these namespaces with their volumes, and all nodes.
    Namespaces(Namespaces),
}

impl Scope {
    /// Reports whether an object is in scope.
    pub(super) fn holds(&self, kind: &Kind, object: &Value) -> bool {
        let Self::Namespaces(namespaces) = self else {
            return true;
        };
        let pointer = match &*kind.storage {
            "nodes" => return true,
            "namespaces" => "/metadata/name",
            "persistentvolumes" => "/spec/claimRef/namespace",
            _ => "/metadata/namespace",
        };
        let namespace = object.pointer(pointer).and_then(Value::as_str);
        namespace.is_some_and(|name| namespaces.names().contains(name))
    }
}
