//! What is expected of the controller, and the named rules for where the reference fails for ever.

use super::left::Left;
use crate::odd::case::{Case, ControllerRecord};

/// A rule that made a case pass although its outcome isn't the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The reference was still at work when the record was cut.
    CutRecord,
}

impl Rule {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CutRecord => "record-cut-while-working",
        }
    }
}

/// Adds what differs from the record; names the rule where one was needed.
pub(super) fn judge(
    _case: &Case,
    record: &ControllerRecord,
    left: &Left,
    is_endless: bool,
    differences: &mut Vec<String>,
) -> Option<Rule> {
    if is_endless {
        return Some(Rule::CutRecord);
    }
    differences.extend(left.differences(&Left::recorded(record)));
    None
}
