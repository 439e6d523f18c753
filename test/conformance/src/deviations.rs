//! The deliberate deviations, each a pure rule from a case to an altered expectation.
//!
//! A rule never looks at what the product did. It says what the specification's reading in
//! [`crate::model`] makes of the case with the deviation and without, and it only speaks where that
//! reading without any deviation gives what was recorded: an expectation that isn't the
//! reference's is never altered.

#[cfg(test)]
mod tests;

use crate::model::{Rules, run};
use crate::outcome::Outcome;
use crate::sync_case::Case;

/// A deviation: its name, and how to switch it.
type Rule = (&'static str, fn(&mut Rules, bool));

/// The deviations that show in a sync.
const RULES: [Rule; 8] = [
    ("non-canonical-names", |rules, is_on| {
        rules.canonical_names = is_on;
    }),
    ("conditions-of-others", |rules, is_on| {
        rules.keep_conditions = is_on;
    }),
    ("counters-not-negative", |rules, is_on| {
        rules.counters_not_negative = is_on;
    }),
    ("renumbering-retries-conflicts", |rules, is_on| {
        rules.retry_renumbering = is_on;
    }),
    ("live-set-before-dooming-claims", |rules, is_on| {
        rules.live_set_before_dooming = is_on;
    }),
    ("wanted-pods-keep-their-claims", |rules, is_on| {
        rules.take_claims_from_wanted = is_on;
    }),
    ("deletions-name-objects", |rules, is_on| {
        rules.deletions_name_objects = is_on;
    }),
    ("unknown-members", |rules, is_on| {
        rules.unknown_members = is_on;
    }),
];

/// Alters what is expected of a case; returns the names of the rules that changed anything.
///
/// An expectation that has a deviation in it already can't be a recording of the reference. The
/// reference's outcome stands in for it, which the product then fails to meet.
pub fn apply(case: &Case, expected: Outcome) -> (Outcome, Vec<&'static str>) {
    let (Ok(reference), Ok(product)) = (run(case, Rules::REFERENCE), run(case, Rules::PRODUCT))
    else {
        return (expected, Vec::new());
    };
    if product == reference {
        return (expected, Vec::new());
    }
    if reference == expected {
        let names = names(case, &reference, &product);
        return (product, names);
    }
    let is_altered_already = product == expected;
    (
        if is_altered_already {
            reference
        } else {
            expected
        },
        Vec::new(),
    )
}

/// The rules without which the case would go another way; where any of several would do, the rules
/// that make a difference by themselves.
fn names(case: &Case, reference: &Outcome, product: &Outcome) -> Vec<&'static str> {
    let changes = |base: Rules, is_on: bool, outcome: &Outcome| {
        let matters = move |(_, switch): &&Rule| {
            let mut rules = base;
            switch(&mut rules, is_on);
            run(case, rules).is_ok_and(|other| other != *outcome)
        };
        let rules = RULES.iter().filter(matters);
        rules.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    let needed = changes(Rules::PRODUCT, false, product);
    if needed.is_empty() {
        changes(Rules::REFERENCE, true, reference)
    } else {
        needed
    }
}
