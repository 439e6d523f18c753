//! The active rules for watches, and the open watches.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::applied::Applied;
use super::facts::RequestFacts;
use super::rule::RuleId;
use super::schedule::Running;
use super::watch_rule::WatchRule;

/// The active rules for watches, and the open watches.
#[derive(Debug, Default)]
pub(super) struct Watches {
    rules: Vec<ActiveWatchRule>,
    next_watch: u64,
    open: BTreeMap<u64, RequestFacts>,
}

#[derive(Debug)]
struct ActiveWatchRule {
    id: RuleId,
    rule: WatchRule,
    running: Running,
    /// Limits the rule to watches with a smaller number.
    opened_before: Option<u64>,
}

/// A watch's position in the list of rules.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) watch: u64,
    /// The newest rule already evaluated.
    newest: Option<RuleId>,
}

impl Watches {
    /// Adds a rule; `open_only` excludes later watches.
    pub(super) fn add(&mut self, id: RuleId, rule: WatchRule, seed: u64, open_only: bool) {
        self.rules.push(ActiveWatchRule {
            id,
            running: Running::start(rule.when, seed),
            rule,
            opened_before: open_only.then_some(self.next_watch),
        });
        self.forget_spent();
    }

    pub(super) fn remove(&mut self, id: RuleId) -> bool {
        let before = self.rules.len();
        self.rules.retain(|active| active.id != id);
        self.rules.len() < before
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    /// Returns the requests of the open watches, oldest first.
    pub(super) fn open(&self) -> Vec<RequestFacts> {
        self.open.values().cloned().collect()
    }

    pub(super) fn begin(&mut self, facts: &RequestFacts) -> Seen {
        let watch = self.next_watch;
        self.next_watch += 1;
        self.open.insert(watch, facts.clone());
        Seen {
            watch,
            newest: None,
        }
    }

    pub(super) fn end(&mut self, watch: u64) {
        self.open.remove(&watch);
        self.forget_spent();
    }

    /// Drops rules for open watches once all of these have ended.
    fn forget_spent(&mut self) {
        let oldest = self.open.keys().next().copied();
        self.rules.retain(|active| {
            active
                .opened_before
                .is_none_or(|before| oldest.is_some_and(|oldest| oldest < before))
        });
    }

    /// Updates the rules applied to a watch. Returns the new rules among them.
    pub(super) fn refresh(
        &mut self,
        seen: &mut Seen,
        facts: &RequestFacts,
        applied: &mut Vec<Applied>,
    ) -> Vec<RuleId> {
        applied.retain(|old| self.rules.iter().any(|active| active.id == old.id));
        let known = seen.newest;
        let mut selected = Vec::new();
        for active in &mut self.rules {
            if known.is_some_and(|known| active.id <= known) {
                continue;
            }
            seen.newest = Some(active.id);
            let applies = active
                .opened_before
                .is_none_or(|before| seen.watch < before)
                && active.rule.matcher.matches(facts, &[])
                && active.running.selects_next();
            if applies {
                selected.push(active.id);
                let random = StdRng::from_rng(&mut active.running.random);
                applied.push(Applied::new(active.id, active.rule.clone(), random));
            }
        }
        selected
    }
}
