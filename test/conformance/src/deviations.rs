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
use crate::sync::Case;

/// A deviation: its name, and how to switch it off.
type Rule = (&'static str, fn(&mut Rules));

/// The deviations that show in a sync.
const RULES: [Rule; 6] = [
    ("non-canonical-names", |rules| rules.canonical_names = false),
    ("foreign-status-members", |rules| {
        rules.keep_foreign_status = false;
    }),
    ("counters-not-negative", |rules| {
        rules.counters_not_negative = false;
    }),
    ("renumbering-retries-conflicts", |rules| {
        rules.retry_renumbering = false;
    }),
    ("live-set-before-dooming-claims", |rules| {
        rules.live_set_before_dooming = false;
    }),
    ("unknown-members", |rules| rules.unknown_members = false),
];

/// Alters what is expected of a case; returns the names of the rules that changed anything.
pub fn apply(case: &Case, expected: Outcome) -> (Outcome, Vec<&'static str>) {
    let (Ok(reference), Ok(product)) = (run(case, Rules::REFERENCE), run(case, Rules::PRODUCT))
    else {
        return (expected, Vec::new());
    };
    if product == reference || reference != expected {
        return (expected, Vec::new());
    }
    let matters = |(_, switch_off): &&Rule| {
        let mut others = Rules::PRODUCT;
        switch_off(&mut others);
        run(case, others).is_ok_and(|without| without != product)
    };
    let names = RULES
        .iter()
        .filter(matters)
        .map(|(name, _)| *name)
        .collect();
    (product, names)
}
