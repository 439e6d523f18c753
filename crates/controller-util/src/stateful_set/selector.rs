//! Set selectors, compiled once.

use std::collections::BTreeMap;

use kube_apimachinery::selector::{LabelSelector, Selector, SelectorError};

/// The pod selector of a set, in its original and compiled form.
#[derive(Debug)]
pub struct SetSelector {
    /// Labels that pods must have, and that claims receive.
    match_labels: BTreeMap<String, String>,
    compiled: Result<Selector, SelectorError>,
}

impl SetSelector {
    /// Compiles a selector; `None` matches nothing.
    pub(super) fn new(selector: Option<LabelSelector>) -> Self {
        Self {
            compiled: Selector::from_label_selector(selector.as_ref()),
            match_labels: selector.unwrap_or_default().match_labels,
        }
    }

    /// Labels that pods must have, and that claims receive.
    pub fn match_labels(&self) -> &BTreeMap<String, String> {
        &self.match_labels
    }

    /// The compiled selector.
    ///
    /// # Errors
    ///
    /// Reason why the selector can't be compiled.
    pub fn compiled(&self) -> Result<&Selector, SelectorError> {
        self.compiled.as_ref().map_err(Clone::clone)
    }
}
