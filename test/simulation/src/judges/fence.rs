//! The fence: who may write, and when.

use std::time::Duration;

use super::{Case, Verdict};
use crate::api_servers::{FenceChange, FenceState, server_of, state_at};
use crate::plan::Fence;
use crate::record::Request;

/// Time that the controller waits after a change before it proves the fence: an API server that takes
/// longer is outside F-2.
const PROPAGATION: Duration = Duration::from_millis(1_200);
/// Time for everything within a process.
const MARGIN: Duration = Duration::from_millis(100);

pub(super) fn judge(case: &Case<'_>, fence: Fence, verdict: &mut Verdict) {
    let changes = &case.record.fence;
    let lag = fence.lag.max();
    for request in case.record.requests.iter().filter(|it| it.is_write()) {
        let is_built_in = case.plan.settings.is_built_in(request.process.instance);
        if !is_built_in {
            judge_sent(case, request, lag, verdict);
        }
        judge_stored(changes, request, (is_built_in, lag), verdict);
    }
}

/// F-1 and F-2: an instance sends a write only while the label and the policies are there, as far as
/// its watches show, and only to an API server that applies them.
fn judge_sent(case: &Case<'_>, request: &Request, lag: Duration, verdict: &mut Verdict) {
    let settings = &case.plan.settings;
    let window = settings.lag.max() + settings.latency.max() * 2 + MARGIN;
    let mut from = request.sent.saturating_sub(window);
    for (process, began, ended) in &case.record.suspensions {
        if *process == request.process && *began <= request.sent && *ended + window >= request.sent
        {
            from = from.min(began.saturating_sub(window));
        }
    }
    let changes = &case.record.fence;
    let during = (from, request.sent);
    if !is_ever(changes, during, |it| it.at, FenceState::stands) {
        let message = format!(
            "{}: the fence does not stand since {from:?}",
            request.named()
        );
        verdict.broken("F-1", request.sent, message);
    }
    let server = server_of(request.process.instance, request.process.life);
    let applied = |it: &FenceChange| it.applied.get(server).copied().unwrap_or_default();
    if lag < PROPAGATION && !is_ever(changes, during, applied, FenceState::stands) {
        let message = format!(
            "{}: API server {server} does not apply the fence since {from:?}",
            request.named()
        );
        verdict.broken("F-2", request.sent, message);
    }
}

/// F-3: no write of the wrong controller is stored once every API server has had the time to deny it.
/// Counts the writes that are stored before.
fn judge_stored(
    changes: &[FenceChange],
    request: &Request,
    (is_built_in, lag): (bool, Duration),
    verdict: &mut Verdict,
) {
    let Some(processed) = request.processed else {
        return;
    };
    if processed.code >= 300 || processed.after == processed.before {
        return;
    }
    let is_allowed = |state: &FenceState| {
        if is_built_in {
            !state.denies_built_in()
        } else {
            !state.denies_instances()
        }
    };
    let at = |it: &FenceChange| it.at;
    if is_allowed(&state_at(changes, processed.at, at)) {
        return;
    }
    verdict.overlaps += 1;
    let during = (processed.at.saturating_sub(lag), processed.at);
    if !is_ever(changes, during, at, is_allowed) {
        let message = format!("{}: is stored against the fence", request.named());
        verdict.broken("F-3", processed.at, message);
    }
}

/// Reports whether the state was so at some moment of a time, both ends included.
fn is_ever(
    changes: &[FenceChange],
    (from, to): (Duration, Duration),
    time: impl Fn(&FenceChange) -> Duration,
    is_so: impl Fn(&FenceState) -> bool,
) -> bool {
    let mut later = changes
        .iter()
        .filter(|it| from < time(it) && time(it) <= to);
    is_so(&state_at(changes, from, &time)) || later.any(|it| is_so(&it.state))
}
