//! Faults of the API server and of the network.

use kube_test_control_plane::faults::FaultError;
use kube_test_control_plane::route::Verb;
use serde_json::json;

use super::Scenario;
use super::environment::{begin, both, settings};
use crate::plan::{Action, Cascade, ClaimRetention, Fault, FaultRequests, Retain, SetSpec};

const CLAIMS: &str = "persistentvolumeclaims";

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 29,
        name: "a third of the creates, updates and deletes fail at random for 10 minutes",
        origin: &[],
        plans: || {
            let errors = [
                FaultError::InternalError {
                    message: "out of order".to_owned(),
                },
                FaultError::TooManyRequests {
                    retry_after_seconds: 1,
                },
            ];
            let plans = errors.map(|error| {
                let requests = requests(&[Verb::Create, Verb::Update, Verb::Delete], None, 33);
                let fault = Fault::Reject { requests, error };
                begin(settings(), &SetSpec::default())
                    .at(0, Action::fault(fault, 600_000))
                    .at(100_000, Action::image("b"))
                    .at(200_000, Action::scale(5))
            });
            plans.into()
        },
        expect: |it, check| {
            let code = [500, 429][it.nth];
            let refused = it.writes().filter(|it| it.status == Some(code)).count();
            check.occurred("writes fail", refused > 5);
            check.holds("few writes", it.writes().count() < 150);
            check.equal("images", &*it.images(it.end()), "b b b b b");
            check.equal("pods named web-0", it.incarnations("web-0"), 2);
        },
    },
    Scenario {
        number: 30,
        name: "the responses to all kinds of writes are lost",
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
            let lose = |verb, resource| {
                let requests = requests(&[verb], Some(resource), 100);
                Action::fault(Fault::LoseResponse(requests), 20_000)
            };
            let smaller = SetSpec {
                replicas: 2,
                image: "b".to_owned(),
                ..spec.clone()
            };
            vec![
                begin(settings(), &spec)
                    .at(0, lose(Verb::Create, "pods"))
                    .at(60_000, lose(Verb::Update, CLAIMS))
                    .at(60_000, Action::scale(2))
                    .at(120_000, lose(Verb::Delete, "pods"))
                    .at(120_000, Action::image("b"))
                    .at(180_000, Action::delete(Cascade::Orphan))
                    .at(190_000, lose(Verb::Patch, "pods"))
                    .at(190_000, Action::Create(smaller))
                    .at(240_000, lose(Verb::Update, "statefulsets"))
                    .at(240_000, Action::image("c")),
            ]
        },
        expect: |it, check| {
            check.occurred("lost creations", it.lost(Verb::Create, "pods") > 0);
            check.occurred("lost deletions", it.lost(Verb::Delete, "pods") > 0);
            check.occurred("lost owners", it.lost(Verb::Update, CLAIMS) > 0);
            check.occurred("lost adoptions", it.lost(Verb::Patch, "pods") > 0);
            check.occurred("lost statuses", it.lost(Verb::Update, "statefulsets") > 0);
            let incarnations = [
                it.incarnations("web-0"),
                it.incarnations("web-1"),
                it.incarnations("web-2"),
            ];
            check.equal("incarnations of the pods", incarnations, [3, 3, 1]);
            let gone = it.gone(CLAIMS, "data0-web-2").len();
            check.equal("claims that go", gone, 1);
            check.equal("images", &*it.images(it.end()), "c c");
        },
    },
    Scenario {
        number: 31,
        name: "a quota allows two of three pods",
        origin: &[108_837, 85690],
        plans: || {
            let quota = Fault::Quota { pods: 2 };
            vec![
                begin(settings(), &SetSpec::default())
                    .at(0, Action::fault(quota, 300_000))
                    .at(240_000, Action::annotate("statefulsets", "web", "x")),
            ]
        },
        expect: |it, check| {
            let refused = it.refused(Verb::Create, "pods", 403);
            check.occurred("creations are refused", refused > 3);
            check.holds("the creations back off", refused < 30);
            let status = it.set("web", 250_000).map(|it| it.status.clone());
            let counts = status.map(|it| (it.replicas, it.ready, it.updated));
            check.equal("counts", counts, Some((2, 2, 2)));
            check.equal("revisions", it.revisions_ever(), 1);
        },
    },
    Scenario {
        number: 32,
        name: "a condemned pod uses the quota that a desired one needs",
        origin: &[140_858, 141_057],
        plans: || {
            let spec = SetSpec {
                parallel: true,
                ..SetSpec::default()
            };
            let start = Action::FirstOrdinal {
                set: "web".to_owned(),
                start: 1,
            };
            vec![
                begin(settings(), &spec)
                    .at(60_000, Action::fault(Fault::Quota { pods: 3 }, 240_000))
                    .at(61_000, start),
            ]
        },
        // As version 1.36: the refused creation ends each sync before the condemned pods' turn.
        expect: |it, check| {
            let refused = it.refused(Verb::Create, "pods", 403);
            check.occurred("creations are refused", refused > 3);
            check.equal(
                "pods under the quota",
                it.names(110_000).join(" ").as_str(),
                "web-0 web-1 web-2",
            );
            check.equal(
                "pods",
                it.names(it.end()).join(" ").as_str(),
                "web-1 web-2 web-3",
            );
            check.equal("pods named web-1", it.incarnations("web-1"), 1);
        },
    },
    Scenario {
        number: 33,
        name: "admission denies the pods of a new template until it is reverted",
        origin: &[],
        plans: || {
            both(|parallel| {
                let spec = SetSpec {
                    parallel,
                    ..SetSpec::default()
                };
                let deny = Fault::DenyImage {
                    image: "b".to_owned(),
                };
                begin(settings(), &spec)
                    .at(55_000, Action::fault(deny, 300_000))
                    .at(60_000, Action::image("b"))
                    .at(120_000, Action::image("a"))
                    .at(240_000, Action::annotate("statefulsets", "web", "x"))
            })
        },
        expect: |it, check| {
            let refused = it.refused(Verb::Create, "pods", 403);
            check.occurred("creations are refused", refused > 3);
            check.equal("images meanwhile", &*it.images(119_000), "a a");
            check.equal("images afterwards", &*it.images(240_000), "a a a");
            check.equal("deletions", it.deletions(), 1);
        },
    },
    Scenario {
        number: 34,
        name: "admission changes every new pod",
        origin: &[],
        plans: || {
            let plan = begin(settings(), &SetSpec::default());
            vec![
                plan.at(0, Action::fault(Fault::MutatePods, 600_000))
                    .at(60_000, Action::annotate("statefulsets", "web", "x"))
                    .at(90_000, Action::image("b")),
            ]
        },
        expect: |it, check| {
            let pod = it.stored("pods", "web-0", 50_000);
            let proxy = pod.pointer("/spec/containers/1/name") == Some(&json!("proxy"));
            check.occurred("pods get a further container", proxy);
            check.equal("writes after the start", it.writes_in(20_000, 89_999), 0);
            check.equal("deletions", it.deletions(), 3);
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 35,
        name: "the owners of claims are forbidden",
        origin: &[126_919],
        plans: || {
            let spec = SetSpec {
                claims: 1,
                retention: ClaimRetention::DELETE,
                ..SetSpec::default()
            };
            let forbid = Fault::Reject {
                requests: requests(&[Verb::Update], Some(CLAIMS), 100),
                error: FaultError::Forbidden {
                    message: "cannot set blockOwnerDeletion".to_owned(),
                },
            };
            vec![
                begin(settings(), &spec)
                    .at(0, Action::fault(forbid, 240_000))
                    .at(240_000, Action::annotate("statefulsets", "web", "x")),
            ]
        },
        expect: |it, check| {
            let refused = it.refused(Verb::Update, CLAIMS, 403);
            check.occurred("owners are refused", refused > 3);
            check.holds("the changes back off", refused < 60);
            check.holds("an event says so", it.events("FailedUpdate") > 0);
            let claim = it.claim("data0-web-0", it.end());
            let owners = claim.map(|it| it.owners.len());
            check.equal("owners at the end", owners, Some(1));
        },
    },
    Scenario {
        number: 36,
        name: "an outage of 20 minutes during a rollout",
        origin: &[],
        plans: || {
            let plan = begin(settings(), &SetSpec::default()).at(60_000, Action::image("b"));
            vec![
                plan.at(60_800, Action::fault(Fault::Outage, 1_200_000))
                    .at(1_230_000, Action::ready(0, false))
                    .at(1_240_000, Action::ready(1, false))
                    .at(1_250_000, Action::ready(1, true))
                    .at(1_262_000, Action::ready(0, true)),
            ]
        },
        expect: |it, check| {
            let done = it.record.commits.iter();
            let meanwhile = done.filter(|it| (61_000..1_260_000).contains(&it.at.as_millis()));
            check.occurred("nothing is stored meanwhile", meanwhile.count() == 0);
            let before = it
                .deletion_times()
                .iter()
                .filter(|it| **it < 60_800)
                .count();
            check.occurred("the roll has begun", before == 1);
            check.equal("deletions", it.deletions(), 3);
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 37,
        name: "another writer changes a pod every 4 ms while the controller repairs it",
        origin: &[],
        plans: || {
            let label = json!({"statefulset.kubernetes.io/pod-name": null});
            let strip = json!({"metadata": {"labels": label}});
            let plan = begin(settings(), &SetSpec::default())
                .at(60_000, Action::edit("pods", "web-1", strip));
            let storm = (0..150).fold(plan, |plan, nth| {
                let change = Action::annotate("pods", "web-1", &nth.to_string());
                plan.at(60_000 + nth * 4, change)
            });
            vec![storm]
        },
        expect: |it, check| {
            let conflicts = it.refused(Verb::Update, "pods", 409);
            check.occurred("changes conflict", conflicts > 2);
            check.holds("the changes end", it.sent(Verb::Update, "pods").len() < 60);
            let label = it.pod("web-1", it.end()).map(|it| it.name_label.as_str());
            check.equal("label", label, Some("web-1"));
            check.equal("pods named web-1", it.incarnations("web-1"), 1);
        },
    },
];

/// Requests that a fault hits.
fn requests(verbs: &[Verb], resource: Option<&str>, percent: u32) -> FaultRequests {
    FaultRequests {
        verbs: verbs.to_vec(),
        resource: resource.map(str::to_owned),
        percent,
        ..FaultRequests::default()
    }
}
