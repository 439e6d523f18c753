//! The state that one request sees.

use std::sync::Arc;

use super::engine::Faults;
use super::facts::RequestFacts;

/// The view of one request.
#[derive(Clone, Debug)]
pub(crate) struct ReadView {
    pub(crate) faults: Faults,
    pub(crate) facts: Arc<RequestFacts>,
}

impl ReadView {
    /// Returns the newest revision that the request sees; `None` if it is unlimited.
    pub(crate) fn horizon(&self, newest: u64) -> Option<u64> {
        self.faults.horizon(&self.facts, newest)
    }
}
