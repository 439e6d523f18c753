//! Simpler environments.

use crate::plan::{Millis, Plan, Settings, Span};

/// A change that makes an environment simpler.
type Simplify = fn(&mut Settings, &Settings);

/// The changes. Each gets upstream's settings too.
const CHANGES: [Simplify; 15] = [
    |it, _| it.instances = it.instances.min(1),
    |it, _| it.instances = it.instances.min(2),
    |it, _| it.workers = 1,
    |it, usual| it.lease = usual.lease,
    |it, _| it.resync = None,
    |it, _| it.latency = Span(1, 1),
    |it, _| it.lag = Span(0, 0),
    |it, usual| it.bookmarks = usual.bookmarks,
    |it, usual| it.max_unavailable = usual.max_unavailable,
    |it, _| it.pod_start = Span(100, 100),
    |it, _| it.pod_ready = Span(100, 100),
    |it, _| it.pod_stop = Span(100, 100),
    |it, _| it.collector_delay = Millis(it.collector_delay.0.min(1_000)),
    |it, _| it.qps = 0,
    |it, _| it.restart = Span(1_000, 1_000),
];

/// Returns the plan in simpler environments, the simplest first, and with a smaller seed.
pub(super) fn candidates(plan: &Plan) -> Vec<Plan> {
    let usual = Settings::default();
    let mut simplest = plan.clone();
    for change in CHANGES {
        change(&mut simplest.settings, &usual);
    }
    let simpler = CHANGES.iter().map(|change| {
        let mut simpler = plan.clone();
        change(&mut simpler.settings, &usual);
        simpler
    });
    let seed = Plan {
        seed: 1,
        ..plan.clone()
    };
    [simplest]
        .into_iter()
        .chain(simpler)
        .chain([seed])
        .filter(|simpler| simpler != plan)
        .collect()
}
