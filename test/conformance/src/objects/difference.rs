//! Difference of a response from the recorded one, and its category.

use std::collections::BTreeMap;

use super::case::Case;
use crate::report::{Report, Verdict};

/// Category of a difference, for counting. A case counts under the first one that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Upstream accepts the request.
    WronglyRefused,
    /// Upstream rejects the request.
    WronglyAccepted,
    /// The request is rejected with another status.
    Status,
    /// Another object.
    Object,
    /// Other warnings.
    Warnings,
    /// An error with another text.
    Text,
}

impl Category {
    /// Name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::WronglyRefused => "wrongly refused",
            Self::WronglyAccepted => "wrongly accepted",
            Self::Status => "status of the error",
            Self::Object => "stored otherwise",
            Self::Warnings => "warnings",
            Self::Text => "text of the error",
        }
    }
}

/// Difference of a response.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) category: Category,
    pub(super) lines: Vec<String>,
}

/// The report of one case.
pub(super) fn report(case: &Case, difference: Option<Difference>) -> Report {
    let mut categories = BTreeMap::new();
    let mut lines = Vec::new();
    if let Some(difference) = difference {
        let name = difference.category.name();
        categories.insert(name.to_owned(), 1);
        categories.insert(format!("{name}, {}", case.kind), 1);
        lines = difference.lines;
        if let Some(first) = lines.first_mut() {
            first.insert_str(0, &format!("{name}: "));
        }
    }
    let mut report = Report::from_iter([Verdict {
        id: case.title(),
        differences: lines,
        deviations: Vec::new(),
    }]);
    report.categories = categories;
    report
}
