//! Leader election.

use kube_test_control_plane::route::Verb;

use super::Scenario;
use super::environment::{begin, pair};
use crate::plan::{Action, Fault, FaultRequests, LeaseTimes, SetSpec, Settings, Span};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 70,
        name: "a deletion arrives after the next leader replaced its pod",
        origin: &[89466, 23731],
        plans: || {
            let late = Fault::DelayRequest {
                requests: FaultRequests::default(),
                delay: Span(120_000, 120_000),
            };
            let isolate = Fault::Isolate { instance: None };
            vec![
                begin(pair(), &SetSpec::default())
                    .at(60_000, Action::image("b"))
                    .at_write(13, Action::fault(late, 0))
                    .at(61_000, Action::fault(isolate, 60_000))
                    .at(200_000, Action::annotate("statefulsets", "web", "x")),
            ]
        },
        expect: |it, check| {
            let deleted = it.sent(Verb::Delete, "pods");
            let late = deleted.first().filter(|it| it.name == "web-2");
            let late = late.and_then(|it| it.processed);
            let arrived = late.is_some_and(|it| it.at.as_secs() >= 180);
            check.occurred("the deletion arrives late", arrived);
            check.occurred("the other instance leads", it.leaders().len() > 1);
            let code = late.map(|it| it.code);
            check.equal("answer", code, Some(409));
            check.equal("pods named web-2", it.incarnations("web-2"), 2);
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 71,
        name: "the leader changes every few seconds for 10 minutes",
        origin: &[],
        plans: || {
            let settings = Settings {
                lease: LeaseTimes {
                    lease: 8,
                    renew: 6,
                    retry: 4,
                },
                ..pair()
            };
            let plan = begin(settings, &SetSpec::default());
            let isolated = (1..40).fold(plan, |plan, nth| {
                let isolate = Fault::Isolate { instance: None };
                plan.at(nth * 15_000, Action::fault(isolate, 12_000))
            });
            vec![
                isolated
                    .at(100_000, Action::image("b"))
                    .at(200_000, Action::scale(4)),
            ]
        },
        expect: |it, check| {
            check.occurred("many takeovers", it.leaders().len() > 15);
            check.equal("images", &*it.images(400_000), "b b b b");
            // Nothing is left to do.
            check.equal(
                "writes of later leaders",
                it.writes_in(400_000, it.end()),
                0,
            );
            check.equal("deletions", it.deletions(), 3);
        },
    },
];
