//! Calls of mutating policies and webhooks again, after others have changed the object.
//!
//! Upstream: `policyReinvokeContext`, `webhookReinvokeContext`

use std::collections::BTreeSet;
use std::mem;

use serde_json::Value;

/// The reviewers of one kind in the rounds of a request.
#[derive(Debug)]
pub(super) struct Reinvocation<K> {
    /// True in the second round.
    is_again: bool,
    /// The object at the end of the last round.
    last: Option<Value>,
    /// Those called since the last change that want to be called again.
    called: BTreeSet<K>,
    /// Those called before a change.
    due: BTreeSet<K>,
}

impl<K> Default for Reinvocation<K> {
    fn default() -> Self {
        Self {
            is_again: false,
            last: None,
            called: BTreeSet::new(),
            due: BTreeSet::new(),
        }
    }
}

impl<K: Ord> Reinvocation<K> {
    /// Returns true if a reviewer is called in this round.
    pub(super) fn calls(&self, reviewer: &K) -> bool {
        !self.is_again || self.due.contains(reviewer)
    }

    /// Returns 0 in the first round, 1 in the second.
    pub(super) fn round(&self) -> usize {
        usize::from(self.is_again)
    }

    /// Notes the call of a reviewer that wants to be called again.
    pub(super) fn note(&mut self, reviewer: K) {
        self.called.insert(reviewer);
    }

    /// Notes a change of the object: those called before are due.
    pub(super) fn changed(&mut self) {
        self.due.append(&mut mem::take(&mut self.called));
    }

    /// Makes the next round the second one.
    pub(super) fn begin_again(&mut self) {
        self.is_again = true;
    }

    /// Begins a round with this object, which others may have changed since the last one.
    pub(super) fn begin(&mut self, object: Option<&Value>) {
        if self.is_again && self.last.as_ref() != object {
            self.changed();
        }
    }

    /// Ends a round with this object.
    pub(super) fn end(&mut self, object: Option<&Value>) {
        self.last = object.cloned();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reviewers_are_due_after_later_changes() {
        let mut calls = Reinvocation::default();
        calls.note("early");
        calls.changed();
        calls.note("late");
        calls.end(Some(&json!(1)));
        calls.begin_again();
        calls.begin(Some(&json!(1)));
        assert!(calls.calls(&"early") && !calls.calls(&"late"));
    }

    #[test]
    fn changes_between_the_rounds_count() {
        let mut calls = Reinvocation::default();
        calls.note("late");
        calls.end(Some(&json!(1)));
        calls.begin_again();
        calls.begin(Some(&json!(2)));
        assert!(calls.calls(&"late"));
    }
}
