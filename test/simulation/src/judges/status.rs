//! Status: sensible numbers, never backwards.

use serde_json::{Value, json};

use super::Verdict;
use super::case::{Case, Write};
use crate::views::Set;

pub(super) fn judge(case: &Case<'_>, write: &Write<'_>, verdict: &mut Verdict) {
    let request = write.request;
    if request.subresource != "status" {
        return;
    }
    let body = request.json();
    let status = body.get("status").cloned().unwrap_or_else(|| json!({}));
    let number = |member: &str| status.get(member).and_then(Value::as_i64).unwrap_or(0);
    let (replicas, ready) = (number("replicas"), number("readyReplicas"));
    let available = number("availableReplicas");
    let (current, updated) = (number("currentReplicas"), number("updatedReplicas"));
    let sensible = (0..=ready).contains(&available)
        && ready <= replicas
        && (0..=replicas).contains(&current)
        && (0..=replicas).contains(&updated);
    let observed = number("observedGeneration");
    if !sensible || observed > write.view.set.generation {
        let message = format!("{}: {status}", write.named());
        verdict.broken("T-1", request.sent, message);
    }
    let Some(processed) = request.processed.filter(|it| it.code < 300) else {
        return;
    };
    if let Some(stored) = case.history.sets.at(&write.sync.set, processed.before)
        && stored.uid == write.view.set.uid
        && observed < stored.status.observed_generation
    {
        let message = format!(
            "{}: observed generation {} -> {observed}",
            write.named(),
            stored.status.observed_generation
        );
        verdict.broken("T-1", request.sent, message);
    }
    // T-3: nothing is written that the sync knew to be stored already.
    let known = &write.view.set.status;
    if Set::read(&body).status == *known {
        let message = format!("{}: the status does not change", write.named());
        verdict.broken("T-3", request.sent, message);
    }
}
