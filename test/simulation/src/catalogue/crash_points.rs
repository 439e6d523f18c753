//! Crashes between two writes.

use kube_test_control_plane::faults::FaultError;
use kube_test_control_plane::route::Verb;

use super::environment::{begin, crashing};
use super::{Check, RunView, Scenario};
use crate::plan::{
    Action, Cascade, ClaimRetention, Fault, FaultRequests, Plan, Retain, SetSpec, Settings, Span,
};

const CLAIMS: &str = "persistentvolumeclaims";

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 14,
        name: "a crash between the creation of a claim and of its pod",
        origin: &[],
        plans: || {
            let spec = SetSpec {
                claims: 1,
                ..SetSpec::default()
            };
            vec![crash_after(begin(crashing(), &spec), 2)]
        },
        expect: |it, check| {
            crashed_at(it, check, Verb::Create, CLAIMS);
            for ordinal in 0..3 {
                let (pod, claim) = (format!("web-{ordinal}"), format!("data0-web-{ordinal}"));
                let counts = (
                    it.incarnations(&pod),
                    it.creation_times(CLAIMS, &claim).len(),
                );
                check.equal(&pod, counts, (1, 1));
            }
        },
    },
    Scenario {
        number: 15,
        name: "a crash after the creation of a pod whose response is lost",
        origin: &[],
        plans: || vec![crash_after(begin(crashing(), &SetSpec::default()), 2)],
        expect: |it, check| {
            crashed_at(it, check, Verb::Create, "pods");
            check.equal("attempts to create web-0", it.create_attempts("web-0"), 1);
            check.equal("pods named web-0", it.incarnations("web-0"), 1);
        },
    },
    Scenario {
        number: 16,
        name: "a crash between a claim's owner and the deletion of its condemned pod",
        origin: &[],
        plans: || {
            let spec = SetSpec {
                claims: 1,
                retention: ClaimRetention {
                    when_scaled: Retain::Delete,
                    when_deleted: Retain::Retain,
                },
                ..SetSpec::default()
            };
            let plan = begin(crashing(), &spec).at(60_000, Action::scale(1));
            let plan = crash_after(plan, 15);
            vec![plan.clone(), plan.at(61_000, Action::scale(3))]
        },
        expect: |it, check| {
            crashed_at(it, check, Verb::Update, CLAIMS);
            let doomed = it.claim("data0-web-2", 61_500);
            let owned = doomed.is_some_and(|it| it.owners.iter().any(|it| it.kind == "Pod"));
            check.occurred("the claim belongs to its pod", owned);
            let gone = it.gone(CLAIMS, "data0-web-2").len();
            if it.nth == 0 {
                check.equal("claims that go", gone, 1);
                check.equal("pods", it.names(it.end()).len(), 1);
            } else {
                // Each claim is taken back before anything else is written.
                check.equal("claims that go", gone, 0);
                check.equal("deletions", it.deletions(), 0);
                let next = it.writes().nth(15);
                let next = next.map(|it| (it.verb, it.name.as_str()));
                check.equal(
                    "next write",
                    next,
                    Some((Some(Verb::Update), "data0-web-2")),
                );
            }
        },
    },
    Scenario {
        number: 17,
        name: "a crash between a deletion for an update and the status",
        origin: &[],
        plans: || {
            let plan = begin(crashing(), &SetSpec::default()).at(60_000, Action::image("b"));
            vec![crash_after(plan, 13)]
        },
        expect: |it, check| {
            crashed_at(it, check, Verb::Delete, "pods");
            check.equal("deletions", it.deletions(), 3);
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 18,
        name: "a crash between the creation of a revision and the status",
        origin: &[],
        plans: || {
            let plan = begin(crashing(), &SetSpec::default());
            let later = plan.clone().at(60_000, Action::image("b"));
            vec![crash_after(plan, 1), crash_after(later, 12)]
        },
        expect: |it, check| {
            crashed_at(it, check, Verb::Create, "controllerrevisions");
            check.equal("revisions", it.revisions_ever(), it.nth + 1);
            let sent = it.sent(Verb::Create, "controllerrevisions").len();
            check.equal("creations of revisions", sent, it.nth + 1);
        },
    },
    Scenario {
        number: 19,
        name: "a crash after a rollback raised its revision",
        origin: &[],
        plans: || {
            let plan = begin(crashing(), &SetSpec::default())
                .at(60_000, Action::image("b"))
                .at(120_000, Action::image("a"));
            vec![crash_after(plan, 31)]
        },
        expect: |it, check| {
            crashed_at(it, check, Verb::Update, "controllerrevisions");
            let raised = it.sent(Verb::Update, "controllerrevisions").len();
            check.equal("raises", raised, 1);
            check.equal("revisions", it.revisions_ever(), 2);
            check.equal("images", &*it.images(it.end()), "a a a");
        },
    },
    Scenario {
        number: 20,
        name: "a crash in a parallel burst of which half the creations fail",
        origin: &[],
        plans: || {
            let spec = SetSpec {
                parallel: true,
                replicas: 10,
                ..SetSpec::default()
            };
            let fails = Fault::Reject {
                requests: FaultRequests {
                    verbs: vec![Verb::Create],
                    resource: Some("pods".to_owned()),
                    percent: 50,
                    ..FaultRequests::default()
                },
                error: FaultError::InternalError {
                    message: "half of them fail".to_owned(),
                },
            };
            let plan = begin(crashing(), &spec).at(0, Action::fault(fails, 30_000));
            vec![crash_after(plan, 11)]
        },
        expect: |it, check| {
            crashed_at(it, check, Verb::Create, "pods");
            check.occurred("creations fail", it.refused(Verb::Create, "pods", 500) > 2);
            for ordinal in 0..10 {
                let pod = format!("web-{ordinal}");
                check.equal(&pod, it.incarnations(&pod), 1);
            }
            check.holds("few attempts", it.sent(Verb::Create, "pods").len() < 60);
        },
    },
    Scenario {
        number: 21,
        name: "a crash between the release or adoption of a pod and the status",
        origin: &[],
        plans: || {
            let plan = begin(crashing(), &SetSpec::default());
            let release = Action::Relabel {
                pod: "web-1".to_owned(),
                matches: false,
            };
            let adopt = plan
                .clone()
                .at(60_000, Action::delete(Cascade::Orphan))
                .at(90_000, Action::Create(SetSpec::default()));
            vec![
                crash_after(plan.at(60_000, release), 12),
                crash_after(adopt, 14),
            ]
        },
        expect: |it, check| {
            crashed_at(it, check, Verb::Patch, "pods");
            let set = it.set("web", it.end());
            for pod in it.pods(it.end()) {
                let owner = pod.controller.as_ref().map(|it| it.uid.as_str());
                check.equal("owner", owner, set.map(|it| it.uid.as_str()));
            }
            check.equal("deletions", it.deletions(), 0);
            check.equal("pods named web-0", it.incarnations("web-0"), 1);
        },
    },
    Scenario {
        number: 22,
        name: "crashes after every k-th write",
        origin: &[],
        plans: || {
            let every = |k: u64| (1..=20).fold(workload(), |plan, nth| crash_after(plan, k * nth));
            (1..=20).map(every).collect()
        },
        expect: |it, check| {
            let k = it.nth + 1;
            let crashes = (it.writes_in(0, it.calm()) / k).min(20);
            check.occurred("a crash at every kth write", it.crashes() == crashes);
            check.occurred("several crashes", crashes > 1);
            check.equal("images", &*it.images(it.end()), "c c c c");
            check.equal("revisions", it.revisions_ever(), 3);
        },
    },
];

/// Rollouts and a scale-up, with claims.
fn workload() -> Plan {
    let spec = SetSpec {
        claims: 1,
        ..SetSpec::default()
    };
    let settings = Settings {
        restart: Span(500, 500),
        ..crashing()
    };
    begin(settings, &spec)
        .at(320_000, Action::image("b"))
        .at(600_000, Action::scale(4))
        .at(660_000, Action::image("c"))
        .at(800_000, Action::annotate("statefulsets", "web", "x"))
}

fn crash_after(plan: Plan, nth: u64) -> Plan {
    plan.at_write(nth, Action::fault(Fault::CrashAfter, 0))
}

/// Requires that the process crashed after this write, which the API server did.
fn crashed_at(it: &RunView<'_>, check: &mut Check, verb: Verb, resource: &str) {
    check.occurred("one crash", it.crashes() == 1);
    check.occurred(
        "the write is done without an answer",
        it.lost(verb, resource) > 0,
    );
    check.occurred("another process goes on", it.leaders().len() == 2);
}
