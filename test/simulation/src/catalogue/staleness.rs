//! Staleness and time travel.

use std::collections::BTreeSet;

use kube_test_control_plane::route::Verb;

use super::environment::{begin, both, freeze, pair, settings, watch};
use super::run_view::within;
use super::{Check, RunView, Scenario};
use crate::plan::{
    Action, Cascade, ClaimRetention, Fault, FaultRequests, Plan, SetSpec, Settings, Span,
    WatchFault,
};
use crate::views::Set;

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 1,
        name: "two syncs of a new set before the event of its pod",
        origin: &[55159, 80698],
        plans: || {
            let plan = begin(settings(), &SetSpec::default());
            vec![annotated(plan.at(0, freeze(Some("pods"), 20_000)))]
        },
        expect: |it, check| {
            ready_unseen(it, check);
            check.occurred("a sync waits for its own write", it.record.postponed > 0);
            each_pod_once(it, check, 3);
            check.equal("revisions", it.revisions_ever(), 1);
        },
    },
    Scenario {
        number: 2,
        name: "pod events lag by 30 seconds during a scale-up of 10",
        origin: &[130_767],
        plans: || {
            both(|parallel| {
                let spec = SetSpec {
                    parallel,
                    replicas: 10,
                    ..SetSpec::default()
                };
                let delay = Span(30_000, 30_000);
                let lag = watch(Some("pods"), WatchFault::Lag { delay }, 600_000);
                begin(settings(), &spec)
                    .at(0, lag)
                    .at(600_000, Action::scale(10))
            })
        },
        expect: |it, check| {
            ready_unseen(it, check);
            check.occurred("a sync waits for its own write", it.record.postponed > 0);
            each_pod_once(it, check, 10);
            let refused = it.refused(Verb::Create, "pods", 409);
            check.equal("creations of pods that exist", refused, 0);
        },
    },
    Scenario {
        number: 3,
        name: "a status that the cache doesn't show yet",
        origin: &[137_254],
        plans: || {
            let plan = begin(settings(), &SetSpec::default());
            let plan = plan.at(20_000, freeze(Some("statefulsets"), 30_000));
            vec![
                plan.at(21_000, Action::delete_pod(2))
                    .at(35_000, Action::annotate("pods", "web-0", "x")),
            ]
        },
        expect: |it, check| {
            let waits = it.syncs_in("web", 25_000, 49_000) == 0;
            let goes_on = it.syncs_in("web", 50_000, 60_000) > 0;
            check.occurred("syncs wait for their status", waits && goes_on);
            let bodies = it.sent(Verb::Update, "statefulsets");
            let statuses: Vec<_> = bodies
                .iter()
                .map(|it| Set::read(&it.json()).status)
                .collect();
            let repeats = statuses.windows(2).filter(|it| it[0] == it[1]).count();
            check.equal("repeated statuses", repeats, 0);
            check.equal("creations of web-2", it.created("web-2"), 2);
        },
    },
    Scenario {
        number: 4,
        name: "the first revision is not in the cache yet",
        origin: &[56355],
        plans: || {
            let plan = begin(settings(), &SetSpec::default());
            vec![annotated(
                plan.at(0, freeze(Some("controllerrevisions"), 30_000)),
            )]
        },
        expect: |it, check| {
            let waits = it.syncs_in("web", 1_000, 29_000) == 0;
            // No event of a revision wakes a set, so the next sync is a retry.
            let goes_on = it.syncs_in("web", 30_000, it.end()) > 0;
            check.occurred("syncs wait for their revision", waits && goes_on);
            check.equal("revisions", it.revisions_ever(), 1);
            let pods = it.pods(it.end());
            let hashes: BTreeSet<&str> = pods.iter().map(|it| it.revision.as_str()).collect();
            check.equal("hashes of pods", hashes.len(), 1);
        },
    },
    Scenario {
        number: 5,
        name: "a claim exists whose creation got no response and no event",
        origin: &[],
        plans: || {
            let spec = SetSpec {
                claims: 1,
                ..SetSpec::default()
            };
            let lose = Fault::LoseResponse(FaultRequests::default());
            let plan = begin(settings(), &spec).at_write(2, Action::fault(lose, 0));
            vec![plan.at(0, freeze(Some("persistentvolumeclaims"), 20_000))]
        },
        expect: |it, check| {
            let (verb, claims) = (Verb::Create, "persistentvolumeclaims");
            check.occurred("the answer is lost", it.lost(verb, claims) == 1);
            check.occurred(
                "the claim exists already",
                it.refused(verb, claims, 409) > 0,
            );
            for ordinal in 0..3 {
                let claim = format!("data0-web-{ordinal}");
                check.equal(
                    &claim,
                    it.creation_times("persistentvolumeclaims", &claim).len(),
                    1,
                );
            }
            each_pod_once(it, check, 3);
        },
    },
    Scenario {
        number: 6,
        name: "a parallel scale-down meets a pod that is gone",
        origin: &[136_812],
        plans: || {
            // 1,000 pods in the catalogue: 20 make the same burst in less time.
            let spec = SetSpec {
                parallel: true,
                replicas: 20,
                ..SetSpec::default()
            };
            let plan = begin(settings(), &spec).at(60_000, freeze(Some("pods"), 30_000));
            vec![
                plan.at(61_000, Action::kill_pod(10))
                    .at(62_000, Action::scale(0))
                    .at(120_000, Action::scale(1)),
            ]
        },
        expect: |it, check| {
            let missing = it.refused(Verb::Delete, "pods", 404);
            check.occurred("a deletion finds no pod", missing > 0);
            check.equal("deleted pods", it.deletions(), 19);
            let sent = it.sent(Verb::Delete, "pods");
            let syncs: BTreeSet<_> = sent.iter().map(|it| it.sync).collect();
            check.equal("syncs that deleted", syncs.len(), 1);
        },
    },
    Scenario {
        number: 7,
        name: "a takeover during a rollout, with a cache from a frozen replica",
        origin: &[59848],
        plans: || {
            let plan = begin(slow_restart(), &SetSpec::default()).at(30_000, Action::image("b"));
            vec![fail_over(plan, 29_000, 32_100)]
        },
        expect: |it, check| {
            took_over_frozen(it, check, 32_100);
            let new = it.creation_times("pods", "web-2").get(1).copied();
            check.occurred("web-2 is new", new.is_some_and(|at| at < 32_100));
            check.equal("pods named web-2", it.incarnations("web-2"), 2);
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 8,
        name: "a takeover with a cache that still shows fewer replicas",
        origin: &[],
        plans: || {
            let spec = SetSpec {
                claims: 1,
                retention: ClaimRetention::DELETE,
                ..SetSpec::default()
            };
            let plan = begin(slow_restart(), &spec)
                .at(30_000, Action::scale(1))
                .at(60_000, Action::scale(3));
            vec![fail_over(plan, 59_000, 90_000)]
        },
        expect: |it, check| {
            took_over_frozen(it, check, 90_000);
            for ordinal in 1..3 {
                let (pod, claim) = (format!("web-{ordinal}"), format!("data0-web-{ordinal}"));
                check.equal(&pod, it.incarnations(&pod), 2);
                check.equal(&claim, it.gone("persistentvolumeclaims", &claim).len(), 1);
            }
        },
    },
    Scenario {
        number: 9,
        name: "a takeover with a cache that still shows the deleted set",
        origin: &[],
        plans: || {
            let plan = begin(slow_restart(), &SetSpec::default())
                .at(30_000, Action::delete(Cascade::Foreground))
                .at(60_000, Action::Create(SetSpec::default()));
            vec![fail_over(plan, 30_200, 90_000)]
        },
        expect: |it, check| {
            took_over_frozen(it, check, 90_000);
            let old = it.set("web", 30_200);
            check.occurred(
                "the old set is deleted",
                old.is_some_and(|it| it.terminating),
            );
            check.equal("deletions", it.deletions(), 0);
            for ordinal in 0..3 {
                let pod = format!("web-{ordinal}");
                check.equal(&pod, it.incarnations(&pod), 2);
            }
        },
    },
    Scenario {
        number: 10,
        name: "a takeover with a cache that still shows the old template",
        origin: &[],
        plans: || {
            let plan = begin(slow_restart(), &SetSpec::default()).at(30_000, Action::image("b"));
            vec![fail_over(plan, 29_000, 60_000)]
        },
        expect: |it, check| {
            took_over_frozen(it, check, 60_000);
            check.equal("revisions", it.revisions_ever(), 2);
            check.equal("deletions", it.deletions(), 3);
            check.equal(
                "writes after the takeover",
                it.writes_in(60_001, it.end()),
                0,
            );
        },
    },
    Scenario {
        number: 11,
        name: "all watches expire as API servers restart",
        origin: &[],
        plans: || {
            let plan = begin(settings(), &SetSpec::default());
            let restart = |plan: Plan, at| {
                plan.at(at, Action::fault(Fault::Compact, 0))
                    .at(at + 1, watch(None, WatchFault::Expire, 2_000))
                    .at(at + 5_000, watch(None, WatchFault::Cut, 1_000))
            };
            vec![restart(restart(restart(plan, 60_000), 75_000), 90_000)]
        },
        expect: |it, check| {
            let lists = it.record.requests.iter();
            let lists = lists.filter(|it| it.verb == Some(Verb::List) && it.resource == "pods");
            check.occurred("the watches list again", lists.count() > 1);
            check.equal("writes", it.writes_in(55_000, it.end()), 0);
        },
    },
    Scenario {
        number: 12,
        name: "a created pod is deleted before any event shows it",
        origin: &[141_250],
        plans: || {
            let plan = begin(settings(), &SetSpec::default());
            vec![
                plan.at(0, watch(None, WatchFault::NoBookmarks, 600_000))
                    .at(0, freeze(Some("pods"), 5_000))
                    .at(1_000, Action::kill_pod(0))
                    .at(4_990, watch(Some("pods"), WatchFault::Expire, 2_000)),
            ]
        },
        expect: |it, check| {
            let gone = it.gone("pods", "web-0").first().copied();
            check.occurred("web-0 is gone unseen", gone.is_some_and(|at| at < 5_000));
            check.equal("pods named web-0", it.incarnations("web-0"), 2);
            check.equal("pods after 60 s", it.names(60_000).len(), 3);
        },
    },
    Scenario {
        number: 13,
        name: "events of one kind arrive ahead of another's, without resyncs",
        origin: &[],
        plans: || {
            let late = |resource| {
                let delay = Span(5_000, 5_000);
                let lag = watch(Some(resource), WatchFault::Lag { delay }, 120_000);
                begin(settings(), &SetSpec::default())
                    .at(1, lag)
                    .at(60_000, Action::scale(4))
                    .at(61_000, Action::annotate("pods", "web-0", "x"))
                    .at(90_000, Action::image("b"))
            };
            vec![late("statefulsets"), late("pods")]
        },
        expect: |it, check| {
            let storage = ["statefulsets", "pods"][it.nth];
            let stale = it.stale_syncs(storage, 0, 120_000);
            check.occurred("a sync reads a late cache", stale > 0);
            check.occurred("no resync is configured", it.plan.settings.resync.is_none());
            check.equal("images", &*it.images(it.end()), "b b b b");
        },
    },
];

/// Wakes the syncs of the set again and again.
fn annotated(plan: Plan) -> Plan {
    (1..10).fold(plan, |plan, nth| {
        let change = Action::annotate("statefulsets", "web", &nth.to_string());
        plan.at(nth * 500, change)
    })
}

/// Two instances of which a crashed one stays away.
fn slow_restart() -> Settings {
    Settings {
        restart: Span(600_000, 600_000),
        ..pair()
    }
}

/// The instance that leads first in these runs.
const FIRST: usize = 1;

/// The leader dies, and the API server of the other instance stopped learning before.
fn fail_over(plan: Plan, frozen: u64, crash: u64) -> Plan {
    let replica = Fault::FrozenReplica {
        instance: Some(1 - FIRST),
    };
    let crashes = Action::Crash {
        instance: Some(FIRST),
    };
    plan.at(frozen, Action::fault(replica, 120_000))
        .at(crash, crashes)
}

/// Requires that the other instance took over while its replica was frozen.
fn took_over_frozen(it: &RunView<'_>, check: &mut Check, crash: u64) {
    let syncs = it.record.syncs.iter();
    let before: Vec<_> = syncs.clone().filter(|it| within(it.at, 0, crash)).collect();
    let led = before.iter().all(|it| it.process.instance == FIRST);
    check.occurred("the first instance leads", led && !before.is_empty());
    let mut others = syncs.filter(|it| it.process.instance != FIRST);
    let after = others.next();
    let in_time = after.is_some_and(|it| within(it.at, crash, crash + 60_000));
    check.occurred("the other instance takes over", in_time);
}

/// Requires that each of the first pods was created once, at the first attempt.
fn each_pod_once(it: &RunView<'_>, check: &mut Check, pods: u32) {
    for ordinal in 0..pods {
        let pod = format!("web-{ordinal}");
        check.equal(
            &pod,
            (it.create_attempts(&pod), it.incarnations(&pod)),
            (1, 1),
        );
    }
}

/// Requires that the first pod was ready and the status didn't show it, as no event came.
fn ready_unseen(it: &RunView<'_>, check: &mut Check) {
    let ready = it.pod("web-0", 19_000).is_some_and(|it| it.is_ready());
    let shown = it.set("web", 19_000).is_some_and(|it| it.status.ready > 0);
    check.occurred("the controller misses events of web-0", ready && !shown);
}
