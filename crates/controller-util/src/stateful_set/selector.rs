//! The selector of a set, compiled once.

use std::collections::BTreeMap;

use kube_apimachinery::selector::{LabelSelector, Selector, SelectorError};

/// Which pods belong to a set, as the set says it and compiled.
#[derive(Debug)]
pub struct SetSelector {
    /// Labels that pods must have; claims get them.
    match_labels: BTreeMap<String, String>,
    compiled: Result<Selector, SelectorError>,
}

impl SetSelector {
    /// Compiles a selector; none selects nothing.
    pub(super) fn new(selector: Option<LabelSelector>) -> Self {
        Self {
            compiled: Selector::from_label_selector(selector.as_ref()),
            match_labels: selector.unwrap_or_default().match_labels,
        }
    }

    /// Labels that pods must have; claims get them.
    pub fn match_labels(&self) -> &BTreeMap<String, String> {
        &self.match_labels
    }

    /// The selector to match with.
    ///
    /// # Errors
    ///
    /// Why the selector can't be compiled.
    pub fn compiled(&self) -> Result<&Selector, SelectorError> {
        self.compiled.as_ref().map_err(Clone::clone)
    }
}
