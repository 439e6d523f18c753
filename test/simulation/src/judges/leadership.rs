//! Writes without the lease.

use super::{Case, Verdict};

/// P-4: no write starts while another process holds the lease, or after the time in which its
/// process may write.
pub(super) fn judge(case: &Case<'_>, verdict: &mut Verdict) {
    // The built-in controller has another lease.
    let settings = &case.plan.settings;
    let elected = |process: usize| !settings.is_built_in(process);
    let writes = case.record.requests.iter().filter(|it| it.is_write());
    for request in writes.filter(|it| elected(it.process.instance)) {
        let (process, sent) = (request.process, request.sent);
        let until = case.leases.writes_until(process, sent);
        if until.is_none_or(|until| sent > until) {
            let message = format!("{}: writes only until {until:?}", request.named());
            verdict.broken("P-4", sent, message);
        }
        let holder = case.leases.holder_at(sent);
        if holder != Some(&format!("controller-{process}")) {
            let message = format!("{}: {holder:?} held the lease", request.named());
            verdict.broken("P-4", sent, message);
        }
    }
}
