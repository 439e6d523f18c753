//! The condition about the sizes of claims.

use jiff::Timestamp;
use statefulset_controller_util::stateful_set::{Condition, Conditions, StatefulSetStatus};

use super::grow::{Growth, Unfinished};
use super::state::ClaimState;
use crate::conditions::{CLAIMS_RESIZED, condition};

/// Claims that the message names at most.
const NAMED_MAX: usize = 3;

const ALL_RESIZED: &str = "AllClaimsResized";

/// Sets the condition of a computed status; `None` removes it.
pub fn report(status: &mut StatefulSetStatus, growth: Option<&Growth>, now: Timestamp) {
    let conditions = status.conditions.as_ref();
    status.conditions = match growth {
        // The settled syncs of sets that never asked for sizes end here.
        None if !conditions.is_some_and(|it| it.mentions(CLAIMS_RESIZED)) => return,
        None => Conditions::without(conditions, |it| *it.condition_type == *CLAIMS_RESIZED),
        Some(growth) => {
            let value = if growth.is_complete() {
                "True"
            } else {
                "False"
            };
            let resized = Condition {
                reason: reason(growth).into(),
                message: message(growth).into(),
                ..condition(conditions, CLAIMS_RESIZED, value, None, now)
            };
            Some(Conditions::with(conditions, &resized))
        }
    };
}

/// Returns the reason: the gravest state of a claim.
fn reason(growth: &Growth) -> &'static str {
    let later = growth.is_partial.then_some(ClaimState::Queued);
    let states = growth.unfinished.iter().map(|it| it.state);
    let gravest = states.chain(later).min();
    gravest.map_or(ALL_RESIZED, |state| state.reason())
}

/// Returns the message: the counts, and the claims with the gravest states. It changes only with them.
fn message(growth: &Growth) -> String {
    let done = growth.total - growth.unfinished.len();
    let total = growth.total;
    let mut gravest: Vec<&Unfinished> = growth.unfinished.iter().collect();
    // Stable, so the claims of a state keep their order.
    gravest.sort_by_key(|it| it.state);
    let counts = format!("{done} of {total} claims have the size that the set asks for");
    let named = gravest.iter().take(NAMED_MAX).map(|it| {
        let (claim, state) = (&it.claim, it.state.description());
        match &*it.message {
            "" => format!("{claim}: {state}"),
            message => format!("{claim}: {state} ({message})"),
        }
    });
    let left = gravest.len().saturating_sub(NAMED_MAX);
    let rest = (left > 0).then(|| format!("and {left} more"));
    let later = growth.is_partial;
    let later = later.then(|| "those of missing pods come later".to_owned());
    let parts = [counts].into_iter().chain(named).chain(rest).chain(later);
    let parts: Vec<String> = parts.collect();
    parts.join("; ")
}
