//! Remarks about a request, for its response and the audit log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Warnings for the client and annotations for the audit log. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remarks(Arc<Mutex<Made>>);

#[derive(Debug, Default)]
struct Made {
    warnings: Vec<String>,
    annotations: BTreeMap<String, String>,
}

impl Remarks {
    fn lock(&self) -> MutexGuard<'_, Made> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a warning, which the client gets even if the request fails.
    pub(crate) fn warn(&self, text: String) {
        self.lock().warnings.push(text);
    }

    /// Sets an annotation, unless it has a value.
    pub(crate) fn annotate(&self, key: String, value: String) {
        self.lock().annotations.entry(key).or_insert(value);
    }

    /// Returns the warnings.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.lock().warnings.clone()
    }

    /// Returns the annotations.
    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        self.lock().annotations.clone()
    }
}
