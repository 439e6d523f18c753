//! Judges: the rules for every write, and for the end.
//!
//! A rule of the view compares a write with the knowledge of its sync: the objects at the versions
//! of the caches when the sync began. A rule of the truth compares it with the API server's
//! stored objects. The rules' names are those of docs/reliability.md.

mod bodies;
mod budget;
mod case;
mod conditions;
mod end_state;
mod identity;
mod leases;
mod losses;
mod order;
mod ownership;
mod process;
mod revisions;
mod settled;
mod status;
mod volumes;
mod work;
mod write;

use std::fmt;
use std::time::Duration;

use crate::history::History;
use crate::plan::Plan;
use crate::record::Record;
pub use case::{Case, View, belongs};
pub use write::Write;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// Time after the start of the run.
    pub at: Duration,
    /// The violation.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, at, message } = self;
        write!(f, "{rule} at {:.3} s: {message}", at.as_secs_f64())
    }
}

/// The judges' findings.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Broken rules.
    pub violations: Vec<Violation>,
    /// Number of writes, successful or not, that could let the garbage collector delete a claim.
    pub doomed: usize,
    /// Number of those whose spec a user changed in the last moment: after the controller looked
    /// and before the API server got the write.
    pub outrun: usize,
    /// The time from the look at the set to the write, in the API server, of each of them that
    /// arrived.
    pub windows: Vec<Duration>,
    /// Number of claims that the garbage collector removed.
    pub removed: usize,
    /// Number of those that the stored spec wanted again by then.
    pub removed_kept: usize,
}

impl Verdict {
    fn broken(&mut self, rule: &'static str, at: Duration, message: impl Into<String>) {
        self.violations.push(Violation {
            rule,
            at,
            message: message.into(),
        });
    }
}

/// Judges a run.
pub fn judge(plan: &Plan, record: &Record) -> Verdict {
    let history = History::read(record);
    judge_case(&Case::new(plan, record, &history))
}

/// Judges a run whose history has been read.
pub fn judge_case(case: &Case<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    for write in case.writes() {
        identity::judge(case, &write, &mut verdict);
        conditions::judge(case, &write, &mut verdict);
        bodies::judge(case, &write, &mut verdict);
        order::judge(case, &write, &mut verdict);
        budget::judge(case, &write, &mut verdict);
        revisions::judge(case, &write, &mut verdict);
        volumes::judge(case, &write, &mut verdict);
        ownership::judge(case, &write, &mut verdict);
        status::judge(case, &write, &mut verdict);
    }
    identity::judge_strays(case, &mut verdict);
    ownership::judge_orphans(case, &mut verdict);
    losses::judge_removals(case, &mut verdict);
    losses::judge_kept_claims(case, &mut verdict);
    budget::judge_disruptions(case, &mut verdict);
    status::judge_syncs(case, &mut verdict);
    revisions::judge_syncs(case, &mut verdict);
    leases::judge(case, &mut verdict);
    process::judge(case, &mut verdict);
    work::judge(case, &mut verdict);
    end_state::judge(case, &mut verdict);
    end_state::judge_settled_syncs(case, &mut verdict);
    identity::judge_twins(case, &mut verdict);
    verdict
}
