//! Opt-ins of sets: repairs, gates before removals, limits of rollouts, conditions, growth of claims.
//!
//! The annotations are read here, not by the code under test.

mod choices;
mod conditions;
mod gate;
mod growth;
mod in_place;
mod labels;
mod limit;
mod pending;
mod repair;
mod restart;

pub(super) use choices::choices;
pub(super) use conditions::same;
pub(super) use growth::{is_growth, new_spec, pending as pending_growth, tells_of_claims};
pub(super) use in_place::{is_change as is_in_place, is_marked, is_updated_in_place};
pub(super) use labels::is_request;
pub(super) use limit::partition;
pub(super) use pending::pending;
pub(super) use repair::is_repair;
pub(super) use restart::{check_restart, is_restart};

use kube_test_control_plane::route::Verb;

use super::{Case, Verdict, Write};
use crate::views::Pod;

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let Some(choices) = choices(case, write.sync.process, write.view.set) else {
        return;
    };
    repair::judge(case, write, verdict);
    gate::judge(case, write, &choices, verdict);
    growth::judge(case, write, verdict);
    labels::judge(case, write, &choices, verdict);
    conditions::judge(case, write, &choices, verdict);
    in_place::judge(case, write, &choices, verdict);
}

/// Reports whether a parallel set goes on past a pod because its gate may hold: the sync asked the API
/// server for it, or its cache shows the request and the label that holds.
pub(super) fn may_be_held(case: &Case<'_>, write: &Write<'_>, ordinal: u32) -> bool {
    let set = write.view.set;
    let choices = choices(case, write.sync.process, set);
    let Some(gate) = choices.and_then(|it| it.gate).filter(|_| set.parallel) else {
        return false;
    };
    let shows_hold = |pod: &Pod| gate::requested(pod).is_some() && gate.holds(pod);
    let mut earlier = write.earlier.iter();
    let is_asked = earlier.any(|it| {
        let is_read = it.verb == Some(Verb::Get) && it.resource == "pods";
        is_read && super::write::ordinal(&it.name, &set.name) == Some(ordinal)
    });
    let pod = write.view.members.get(&ordinal);
    is_asked || pod.is_some_and(|pod| shows_hold(pod))
}

/// Rules about repairs as a whole.
pub(super) fn judge_run(case: &Case<'_>, verdict: &mut Verdict) {
    repair::judge_repetitions(case, verdict);
    in_place::judge_commits(case, verdict);
}
