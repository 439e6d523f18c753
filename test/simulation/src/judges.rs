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
mod fence;
mod identity;
mod leadership;
mod leases;
mod losses;
mod opt_ins;
mod order;
mod ownership;
mod process;
mod progress;
mod revisions;
mod settled;
mod status;
mod verdict;
mod view;
mod volumes;
mod work;
mod write;

use crate::history::History;
use crate::plan::Plan;
use crate::record::Record;
pub use case::{Case, belongs};
pub use verdict::{Verdict, Violation};
pub use view::View;
pub use write::Write;

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
        opt_ins::judge(case, &write, &mut verdict);
    }
    identity::judge_strays(case, &mut verdict);
    ownership::judge_orphans(case, &mut verdict);
    losses::judge_removals(case, &mut verdict);
    losses::judge_kept_claims(case, &mut verdict);
    budget::judge_disruptions(case, &mut verdict);
    status::judge_syncs(case, &mut verdict);
    revisions::judge_syncs(case, &mut verdict);
    opt_ins::judge_run(case, &mut verdict);
    leadership::judge(case, &mut verdict);
    if let Some(fence) = case.plan.settings.fence {
        fence::judge(case, fence, &mut verdict);
    }
    process::judge(case, &mut verdict);
    work::judge(case, &mut verdict);
    end_state::judge(case, &mut verdict);
    end_state::judge_settled_syncs(case, &mut verdict);
    identity::judge_twins(case, &mut verdict);
    verdict
}
