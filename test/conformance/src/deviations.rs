//! Deliberate deviations: pure rules from a case to an altered expectation.
//!
//! A rule never reads the product's outcome. It compares the results of [`crate::model`] with
//! and without the deviation, and applies only if the model without deviations reproduces the
//! recording: an expectation that isn't upstream's is never altered.

#[cfg(test)]
mod tests;

use crate::model::{Rules, run};
use crate::outcome::Outcome;
use crate::sync_case::Case;

/// A deviation: its name, and its switch.
type Rule = (&'static str, fn(&mut Rules, bool));

/// Deviations that are visible in a sync.
const RULES: [Rule; 9] = [
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
    ("desired-pods-keep-their-claims", |rules, is_on| {
        rules.take_claims_from_wanted = is_on;
    }),
    ("stale-owners-lose-no-claim", |rules, is_on| {
        rules.release_stale_owners = is_on;
    }),
    ("deletions-name-objects", |rules, is_on| {
        rules.deletions_name_objects = is_on;
    }),
    ("unknown-members", |rules, is_on| {
        rules.unknown_members = is_on;
    }),
];

/// Alters the expectation of a case; returns the names of the rules that changed it.
///
/// An expectation that already contains a deviation can't be a recording of upstream. It is
/// replaced with upstream's outcome, which the product then fails to match.
pub fn apply(case: &Case, expected: Outcome) -> (Outcome, Vec<&'static str>) {
    let (Ok(reference), Ok(product)) = (run(case, Rules::UPSTREAM), run(case, Rules::PRODUCT))
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

/// Rules without which the outcome would differ; if several are interchangeable, those that have an
/// effect alone.
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
        changes(Rules::UPSTREAM, true, reference)
    } else {
        needed
    }
}
