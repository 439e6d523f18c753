//! The rows of the served custom resources.

use std::sync::{Arc, PoisonError, RwLock};

use kube_test_control_plane_api::custom::{DEFINITIONS, Definition};
use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::object::Object;
use kube_test_control_plane_api::open_api::Documents;
use kube_test_control_plane_store::store::Store;
use serde_json::{Value, json};

use crate::config::EmulatedVersion;

/// Rows of the served custom resources. They are rebuilt only after a change of a definition.
#[derive(Debug, Default)]
pub(crate) struct CustomKinds(RwLock<Arc<CustomIndex>>);

/// The rows of the definitions at one revision.
#[derive(Debug, Default)]
pub(crate) struct CustomIndex {
    revision: u64,
    definitions: Vec<Indexed>,
    documents: Documents,
}

/// A definition with its rows.
#[derive(Clone, Debug)]
struct Indexed {
    resource_version: u64,
    /// The parts of the definition that the rows are made of.
    source: Arc<Value>,
    rows: Arc<[Arc<Kind>]>,
}

impl CustomKinds {
    /// Returns the index of the stored definitions.
    pub(crate) fn index(&self, store: &Store) -> Arc<CustomIndex> {
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
    fn rebuilt(&self, store: &Store, revision: u64) -> Self {
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

    /// Returns the rows of a definition: the known ones, unless something changed.
    fn indexed(&self, object: &Object) -> Indexed {
        let known = |same: &dyn Fn(&Indexed) -> bool| {
            let found = self.definitions.iter().find(|one| same(one))?;
            Some(Indexed {
                resource_version: object.resource_version,
                ..found.clone()
            })
        };
        if let Some(same) = known(&|one| one.resource_version == object.resource_version) {
            return same;
        }
        let value = object.value();
        let read = Definition(&value);
        let source = json!({
            "name": read.name(),
            "uid": value.pointer("/metadata/uid"),
            "spec": value.get("spec"),
            "names": value.pointer("/status/acceptedNames"),
            "isServed": read.is_established(),
            "isDeleting": read.is_deleting(),
        });
        known(&|one| *one.source == source).unwrap_or_else(|| Indexed {
            resource_version: object.resource_version,
            rows: kinds::of_definition(&value).into(),
            source: Arc::new(source),
        })
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
