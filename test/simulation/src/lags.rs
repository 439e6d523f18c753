//! Report of syncs, duplicate creations, conflicts and violations at each watch lag.

use std::io;

use simulation::exhaustive::workloads;
use simulation::plan::{Plan, Span};

use crate::child::in_child;

/// Lags of the watches in milliseconds.
const LAGS: [u64; 4] = [0, 1_000, 10_000, 60_000];

/// Runs every workload at each lag, with and without the wait for the instance's own writes, and
/// prints a line for each. Returns true if no run that waits broke a rule.
pub(crate) fn print(out: &mut impl io::Write) -> Result<bool, String> {
    let unprinted = |error: io::Error| format!("cannot print: {error}");
    writeln!(
        out,
        "{:>6} {:>7} {:>7} {:>7} {:>10} {:>9} {:>10}",
        "lag", "waits", "syncs", "writes", "duplicates", "conflicts", "violations"
    )
    .map_err(unprinted)?;
    let mut passed = true;
    for lag in LAGS {
        for consistency in [true, false] {
            let sums = run_workloads(lag, consistency)?;
            let [syncs, writes, duplicates, conflicts, broken] = sums;
            let (seconds, waits) = (lag / 1_000, if consistency { "yes" } else { "no" });
            writeln!(
                out,
                "{seconds:>4} s {waits:>7} {syncs:>7} {writes:>7} {duplicates:>10} {conflicts:>9} {broken:>10}"
            )
            .map_err(unprinted)?;
            passed &= !consistency || broken == 0;
        }
    }
    Ok(passed)
}

/// Sums up the syncs, writes, duplicate creations, conflicts and broken rules of the workloads without
/// opt-ins.
fn run_workloads(lag: u64, consistency: bool) -> Result<[usize; 5], String> {
    let mut sums = [0; 5];
    let mut all = workloads();
    all.retain(|it| it.plan.settings.opt_ins.is_none());
    for workload in all {
        let outcome = in_child(&lagging(workload.plan, lag, consistency))
            .map_err(|error| format!("workload {}: {error}", workload.name))?;
        let counted = [
            outcome.syncs,
            outcome.writes,
            outcome.duplicates,
            outcome.conflicts,
            outcome.violations.len(),
        ];
        for (sum, count) in sums.iter_mut().zip(counted) {
            *sum += count;
        }
    }
    Ok(sums)
}

fn lagging(mut plan: Plan, lag: u64, consistency: bool) -> Plan {
    plan.settings.lag = Span(lag, lag);
    plan.settings.consistency = consistency;
    plan
}
