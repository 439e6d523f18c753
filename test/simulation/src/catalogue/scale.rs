//! Many sets, many pods.

use std::collections::BTreeSet;

use kube_test_control_plane::faults::FaultError;
use kube_test_control_plane::route::Verb;

use super::Scenario;
use super::environment::{begin, settings};
use crate::plan::{Action, Fault, FaultRequests, Plan, SetSpec};

/// Number of sets: 2,000 in the catalogue. The simulated control plane needs about a millisecond
/// for a request, and a fair queue shows in few sets as well.
const SETS: usize = 40;

/// Number of pods: 2,000 in the catalogue, of which 2 % fail. The batches of a slow start are the same.
const PODS: u32 = 40;

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 77,
        name: "one of many sets is stuck, another one changes every second",
        origin: &[],
        plans: || {
            let plan = Plan::new(1, settings());
            let sets = (0..SETS).fold(plan, |plan, nth| {
                let spec = SetSpec {
                    name: format!("s{nth}"),
                    image: if nth == 0 { "bad" } else { "a" }.to_owned(),
                    replicas: 1,
                    ..SetSpec::default()
                };
                plan.at(0, Action::Create(spec))
            });
            let hot = (0..30).fold(sets, |plan, nth| {
                let change = Action::annotate("statefulsets", "s1", &nth.to_string());
                plan.at(30_000 + nth * 1_000, change)
            });
            let scale = Action::Scale {
                set: "s2".to_owned(),
                replicas: 2,
            };
            vec![hot.at(45_500, scale)]
        },
        expect: |it, check| {
            let wedged = it.pod("s0-0", 44_000).is_some_and(|it| !it.is_ready());
            check.occurred("a set is wedged", wedged);
            check.occurred("a set is hot", it.syncs_in("s1", 30_000, 60_000) >= 30);
            let first = it.record.syncs.first();
            let first = first.map_or(0, |it| u64::try_from(it.at.as_millis()).unwrap_or(0));
            let sets: BTreeSet<&str> = it.record.syncs.iter().map(|it| it.set.1.as_str()).collect();
            check.equal("sets", sets.len(), SETS);
            for nth in 0..SETS {
                let created = it.creation_times("pods", &format!("s{nth}-0"));
                check.holds(
                    "each set is served soon",
                    created.iter().all(|at| *at < first + 5_000),
                );
                check.equal("pods", created.len(), 1);
            }
            let other = it.creation_times("pods", "s2-1").first().copied();
            check.holds(
                "a quiet set is served at once",
                other.is_some_and(|at| at < 46_000),
            );
        },
    },
    Scenario {
        number: 78,
        name: "some creations of a burst fail",
        origin: &[],
        plans: || {
            let spec = SetSpec {
                parallel: true,
                replicas: PODS,
                ..SetSpec::default()
            };
            let fails = Fault::Reject {
                requests: FaultRequests {
                    verbs: vec![Verb::Create],
                    resource: Some("pods".to_owned()),
                    percent: 4,
                    ..FaultRequests::default()
                },
                error: FaultError::ServiceUnavailable,
            };
            vec![begin(settings(), &spec).at(0, Action::fault(fails, 60_000))]
        },
        expect: |it, check| {
            let refused = it.refused(Verb::Create, "pods", 503);
            check.occurred("creations fail", refused > 0);
            let sent = it.sent(Verb::Create, "pods");
            check.equal("attempts", sent.len(), PODS as usize + refused);
            check.equal("pods", it.names(59_000).len(), PODS as usize);
            // Batches of 1, 2, 4, ... creations: each begins once the one before has ended.
            let first = sent.first().map(|it| it.sync).unwrap_or_default();
            let burst: Vec<_> = sent.iter().filter(|it| it.sync == first).collect();
            let mut begins = 0;
            for size in [1, 2, 4, 8] {
                let batch = burst.get(begins..begins + size).unwrap_or_default();
                let sent: BTreeSet<_> = batch.iter().map(|it| it.sent).collect();
                check.holds("a batch is sent at once", sent.len() <= 1);
                begins += size;
            }
        },
    },
];
