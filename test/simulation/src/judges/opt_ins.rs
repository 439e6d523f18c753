//! What sets opt in to: repairs, gates before removals, limits of rollouts, conditions.
//!
//! The annotations are read here, not by the code under test.

mod choices;
mod conditions;
mod gate;
mod labels;
mod limit;
mod pending;
mod repair;

pub(super) use choices::choices;
pub(super) use conditions::same;
pub(super) use labels::is_request;
pub(super) use limit::partition;
pub(super) use pending::pending;
pub(super) use repair::is_repair;

use super::{Case, Verdict, Write};

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let Some(choices) = choices(case, write.sync.process, write.view.set) else {
        return;
    };
    repair::judge(case, write, verdict);
    gate::judge(case, write, &choices, verdict);
    labels::judge(case, write, &choices, verdict);
    conditions::judge(case, write, &choices, verdict);
}

/// Rules about repairs as a whole.
pub(super) fn judge_run(case: &Case<'_>, verdict: &mut Verdict) {
    repair::judge_repetitions(case, verdict);
}
