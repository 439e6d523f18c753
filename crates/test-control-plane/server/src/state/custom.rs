//! The rows of the served custom resources.

use std::sync::{Arc, PoisonError, RwLock};

use kube_test_control_plane_api::custom::{DEFINITIONS, Definition};
use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::object::Object;
use kube_test_control_plane_api::open_api::Documents;
use kube_test_control_plane_store::store::StoreReader;
use serde_json::Value;

use crate::config::EmulatedVersion;

/// Rows of the served custom resources. They are rebuilt only after a change of a definition.
#[derive(Debug, Default)]
pub(crate) struct CustomKinds(RwLock<Arc<CustomIndex>>);

/// The rows of the definitions at one revision.
#[derive(Debug, Default)]
pub(crate) struct CustomIndex {
    revision: u64,
    /// By name, as the store lists them.
    definitions: Vec<Indexed>,
    documents: Documents,
}

/// A definition with its rows.
#[derive(Clone, Debug)]
pub(crate) struct Indexed {
    pub(crate) object: Arc<Object>,
    pub(crate) value: Arc<Value>,
    rows: Arc<[Arc<Kind>]>,
}

impl CustomKinds {
    /// Returns the index of the stored definitions.
    pub(crate) fn index(&self, store: &StoreReader) -> Arc<CustomIndex> {
        let changes = store.definitions_revision();
        let index = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        if index.revision == changes {
            return index;
        }
        let index = Arc::new(index.rebuilt(store, changes));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&index);
        index
    }
}

impl CustomIndex {
    fn rebuilt(&self, store: &StoreReader, revision: u64) -> Self {
        let (_, objects) = store.list(DEFINITIONS, "");
        let indexed = objects.iter().map(|object| self.indexed(object));
        let definitions: Vec<Indexed> = indexed.collect();
        let rows = definitions.iter().flat_map(|one| one.rows.iter());
        let documents = Documents::of(rows, EmulatedVersion::default());
        Self {
            revision,
            definitions,
            documents,
        }
    }

    /// Returns a definition with its rows, which are rebuilt only if a relevant part changed.
    fn indexed(&self, object: &Arc<Object>) -> Indexed {
        let place = self
            .definitions
            .binary_search_by(|known| known.object.key.cmp(&object.key));
        let known = place.ok().and_then(|place| self.definitions.get(place));
        if let Some(known) = known
            && known.object.resource_version == object.resource_version
        {
            return known.clone();
        }
        let value = Arc::new(object.value());
        let rows = match known.filter(|known| has_same_rows(&known.value, &value)) {
            Some(known) => Arc::clone(&known.rows),
            None => kinds::of_definition(&value).into(),
        };
        Indexed {
            object: Arc::clone(object),
            value,
            rows,
        }
    }

    /// Returns the definitions.
    pub(crate) fn definitions(&self) -> &[Indexed] {
        &self.definitions
    }

    /// Returns all rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.definitions.iter().flat_map(|one| one.rows.iter())
    }

    /// Returns the `OpenAPI` documents.
    pub(crate) fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Returns the row of a resource.
    pub(crate) fn by_resource(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&Arc<Kind>> {
        self.rows()
            .find(|row| row.group == group && row.version == version && row.plural == plural)
    }

    /// Returns the row of a kind in a body.
    pub(crate) fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.rows()
            .find(|row| row.kind == kind && row.api_version() == api_version)
    }

    /// Returns one row of each definition with objects.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.definitions.iter().filter_map(|one| one.rows.first())
    }

    /// Returns a row that serves the objects of a definition.
    pub(crate) fn by_storage(&self, storage: &str) -> Option<&Arc<Kind>> {
        self.rows().find(|row| &*row.storage == storage)
    }
}

/// Returns true if two versions of a definition lead to the same rows.
fn has_same_rows(one: &Value, other: &Value) -> bool {
    let of_definition = |read: Definition<'_>| (read.is_established(), read.is_deleting());
    let is_same = |pointer: &str| one.pointer(pointer) == other.pointer(pointer);
    is_same("/metadata/uid")
        && is_same("/spec")
        && is_same("/status/acceptedNames")
        && of_definition(Definition(one)) == of_definition(Definition(other))
}
