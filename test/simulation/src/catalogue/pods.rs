//! Failed, evicted and lost pods.

use kube_test_control_plane::faults::FaultError;
use kube_test_control_plane::route::Verb;

use super::Scenario;
use super::environment::{begin, both, settings};
use crate::plan::{Action, Fault, FaultRequests, Millis, PodEnd, SetSpec};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 50,
        name: "a failed pod with a finalizer, and a succeeded one; the first deletions fail",
        origin: &[118_310, 121_389],
        plans: || {
            both(|parallel| {
                let spec = SetSpec {
                    parallel,
                    ..SetSpec::default()
                };
                let fails = Fault::Reject {
                    requests: FaultRequests {
                        verbs: vec![Verb::Delete],
                        resource: Some("pods".to_owned()),
                        percent: 100,
                        ..FaultRequests::default()
                    },
                    error: FaultError::ServiceUnavailable,
                };
                begin(settings(), &spec)
                    .at(58_000, Action::hold("pods", "web-1", true))
                    .at(60_000, Action::fault(fails, 100))
                    .at(60_000, Action::end(1, PodEnd::Fails))
                    .at(60_000, Action::end(2, PodEnd::Succeeds))
                    .at(90_000, Action::hold("pods", "web-1", false))
            })
        },
        expect: |it, check| {
            let refused = it.refused(Verb::Delete, "pods", 503);
            check.occurred("deletions fail", refused > 0);
            let stays = it.pod("web-1", 89_000).is_some_and(|it| it.terminating);
            check.occurred("web-1 stays until its finalizer is gone", stays);
            let accepted = it.sent(Verb::Delete, "pods");
            for pod in ["web-1", "web-2"] {
                let of_it = accepted.iter().filter(|it| it.name == pod);
                let accepted = of_it.filter(|it| it.status == Some(200)).count();
                check.equal(pod, (accepted, it.incarnations(pod)), (1, 2));
            }
            check.equal("deletions", it.deletions(), 2);
        },
    },
    Scenario {
        number: 51,
        name: "the first pod is deleted while the next one is not ready",
        origin: &[38418],
        plans: || {
            vec![
                begin(settings(), &SetSpec::default())
                    .at(60_000, Action::ready(1, false))
                    .at(61_000, Action::delete_pod(0))
                    .at(120_000, Action::ready(1, true)),
            ]
        },
        expect: |it, check| {
            let unready = it.pod("web-1", 100_000).is_some_and(|it| !it.is_ready());
            check.occurred("web-1 is not ready", unready);
            let again = it.creation_times("pods", "web-0").get(1).copied();
            check.holds(
                "web-0 is created at once",
                again.is_some_and(|at| at < 63_000),
            );
            check.equal("pods named web-1", it.incarnations("web-1"), 1);
        },
    },
    Scenario {
        number: 52,
        name: "the node of a pod is lost for 20 minutes",
        origin: &[74689, 128_970],
        plans: || {
            let lose = Action::LoseNode {
                node: 0,
                time: Millis(1_200_000),
            };
            vec![
                begin(settings(), &SetSpec::default())
                    .at(60_000, lose)
                    .at(1_300_000, Action::annotate("statefulsets", "web", "x")),
            ]
        },
        expect: |it, check| {
            let stuck = it.pod("web-0", 1_200_000).is_some_and(|it| it.terminating);
            check.occurred("web-0 stops and never ends", stuck);
            check.equal("deletions", it.sent(Verb::Delete, "pods").len(), 0);
            let again = it.creation_times("pods", "web-0").get(1).copied();
            let in_time = again.is_some_and(|at| (1_260_000..1_265_000).contains(&at));
            check.holds("web-0 is replaced once its node is back", in_time);
        },
    },
    Scenario {
        number: 53,
        name: "a set of unhealthy pods is scaled to zero",
        origin: &[57865, 36333],
        plans: || {
            let plan = begin(settings(), &SetSpec::default());
            let unready = (0..3).fold(plan, |plan, nth| plan.at(60_000, Action::ready(nth, false)));
            vec![
                unready
                    .at(61_000, Action::scale(0))
                    .at(120_000, Action::ready(0, true))
                    .at(150_000, Action::ready(1, true))
                    .at(200_000, Action::annotate("statefulsets", "web", "x")),
            ]
        },
        // As version 1.36: an unhealthy pod goes only if no lower one is unhealthy.
        expect: |it, check| {
            let unready = it.pods(110_000).iter().filter(|it| !it.is_ready()).count();
            check.occurred("all pods are unhealthy", unready == 3);
            check.equal("pods while two are unhealthy", it.names(149_000).len(), 3);
            check.equal("pods afterwards", it.names(200_000).len(), 0);
            let order = it.deleted_names().join(" ");
            check.equal("order", order.as_str(), "web-2 web-1 web-0");
        },
    },
];
