//! Ownership, adoption and garbage collection.

use kube_test_control_plane::route::Verb;
use serde_json::json;

use super::Scenario;
use super::environment::{begin, settings};
use crate::plan::{Action, Cascade, Fault, FaultRequests, Millis, Plan, SetSpec, Settings, Span};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 62,
        name: "a set is orphan-deleted while it adopts pods",
        origin: &[42639, 84982],
        plans: || {
            let hold = Fault::DelayRequest {
                requests: FaultRequests {
                    verbs: vec![Verb::Patch],
                    resource: Some("pods".to_owned()),
                    percent: 100,
                    ..FaultRequests::default()
                },
                delay: Span(300, 300),
            };
            vec![
                begin(settings(), &SetSpec::default())
                    .at(60_000, Action::delete(Cascade::Orphan))
                    .at(90_000, Action::fault(hold, 30_000))
                    .at(90_000, Action::Create(SetSpec::default()))
                    .at(90_400, Action::delete(Cascade::Orphan))
                    .at(200_000, Action::annotate("pods", "web-0", "x")),
            ]
        },
        expect: |it, check| {
            let adopted = it.done(Verb::Patch, "pods");
            check.occurred("a pod is adopted", !adopted.is_empty());
            let terminating = it.set("web", 90_500).is_some_and(|it| it.terminating);
            check.occurred("the set is deleted meanwhile", terminating);
            check.occurred("the set is gone", it.set("web", 199_000).is_none());
            let pods = it.pods(199_000);
            check.equal("pods left", pods.len(), 3);
            check.holds(
                "no pod has an owner",
                pods.iter().all(|it| it.controller.is_none()),
            );
            let revisions = it.revisions(199_000);
            check.equal("revisions left", revisions.len(), 1);
            let owned = revisions.iter().any(|it| it.controller.is_some());
            check.holds("no revision has an owner", !owned);
        },
    },
    Scenario {
        number: 63,
        name: "orphaned pods are adopted by a set with another template",
        origin: &[],
        plans: || {
            let new = SetSpec {
                image: "b".to_owned(),
                ..SetSpec::default()
            };
            vec![
                begin(settings(), &SetSpec::default())
                    .at(60_000, Action::delete(Cascade::Orphan))
                    .at(90_000, Action::Create(new)),
            ]
        },
        expect: |it, check| {
            check.occurred("pods are adopted", it.done(Verb::Patch, "pods").len() == 3);
            check.equal("deletions", it.deletions(), 3);
            let times = it.deletion_times();
            let one_by_one = times.windows(2).all(|it| it[1] > it[0] + 1_500);
            check.holds("one pod after another is replaced", one_by_one);
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 64,
        name: "orphaned pods are adopted by a set with an additional claim",
        origin: &[141_876],
        plans: || {
            let new = SetSpec {
                claims: 1,
                ..SetSpec::default()
            };
            vec![
                begin(settings(), &SetSpec::default())
                    .at(60_000, Action::delete(Cascade::Orphan))
                    .at(70_000, Action::Create(new))
                    .at(200_000, Action::delete_pod(0))
                    .at(230_000, Action::delete_pod(1))
                    .at(260_000, Action::delete_pod(2)),
            ]
        },
        // As version 1.36: the set waits until users delete the pods, whose volumes can't change.
        expect: |it, check| {
            let refused = it.refused(Verb::Update, "pods", 422);
            check.occurred("changes are refused", refused > 3);
            let early = it.sent(Verb::Update, "pods");
            let early = early.iter().filter(|it| it.sent.as_secs() < 200).count();
            check.holds("the changes back off", early < 20);
            check.holds("an event says so", it.events("FailedUpdate") > 0);
            check.equal("deletions", it.deletions(), 0);
            let claims = it.pod("web-2", it.end()).map(|it| it.claims.len());
            check.equal("claims of the new pod", claims, Some(1));
        },
    },
    Scenario {
        number: 65,
        name: "two sets whose selectors match the same pods",
        origin: &[36859, 46901],
        plans: || {
            let spec = SetSpec {
                name: "db".to_owned(),
                image: "d".to_owned(),
                ..SetSpec::default()
            };
            let strip = |pod| {
                let change = json!({"metadata": {"ownerReferences": null}});
                Action::edit("pods", pod, change)
            };
            let labels = json!({"app": "web"});
            let change = json!({"spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}},
            }});
            vec![
                begin(settings(), &SetSpec::default())
                    .at(100, Action::CreateWith { spec, change })
                    .at(60_000, Action::scale(2))
                    .at(90_000, strip("web-1"))
                    .at(90_000, strip("db-1"))
                    .at(120_000, Action::image("b")),
            ]
        },
        expect: |it, check| {
            let same = it.pod("db-0", 50_000).is_some_and(|it| it.app == "web");
            check.occurred("both selectors match", same);
            let adopted = it.done(Verb::Patch, "pods");
            check.occurred("two orphans are adopted", adopted.len() == 2);
            let owner = |pod| {
                let pod = it.pod(pod, 100_000)?;
                Some(pod.controller.as_ref()?.name.as_str())
            };
            check.equal("owner of web-1", owner("web-1"), Some("web"));
            check.equal("owner of db-1", owner("db-1"), Some("db"));
            let deleted = it.deleted_names().join(" ");
            check.equal("deleted pods", deleted.as_str(), "web-2 web-1 web-0");
            for pod in ["db-0", "db-1", "db-2"] {
                check.equal(pod, it.incarnations(pod), 1);
            }
        },
    },
    Scenario {
        number: 66,
        // As version 1.36: no event reports a name that is taken, only the log.
        name: "a pod is relabelled, and keeps the name that its set needs",
        origin: &[46901, 113_078],
        plans: || {
            let relabel = Action::Relabel {
                pod: "web-1".to_owned(),
                matches: false,
            };
            vec![
                begin(settings(), &SetSpec::default())
                    .at(60_000, relabel)
                    .at(120_000, Action::delete_pod(1))
                    .at(300_000, Action::annotate("statefulsets", "web", "x")),
            ]
        },
        expect: |it, check| {
            let released = it.pod("web-1", 110_000);
            let released = released.is_some_and(|it| it.controller.is_none());
            check.occurred("web-1 is released", released);
            let refused = it.refused(Verb::Create, "pods", 409);
            check.holds("the creations back off", (3..25).contains(&refused));
            check.equal("deletions", it.deletions(), 0);
            check.equal("pods named web-1", it.incarnations("web-1"), 2);
        },
    },
    Scenario {
        number: 67,
        name: "a set is deleted and created again before its pods are gone",
        origin: &[],
        plans: || {
            let settings = Settings {
                collector_delay: Millis(5_000),
                ..settings()
            };
            vec![
                begin(settings, &SetSpec::default())
                    .at(60_000, Action::delete(Cascade::Background))
                    .at(61_000, Action::Create(SetSpec::default())),
            ]
        },
        expect: |it, check| {
            let sets = it.creation_times("statefulsets", "web").len();
            check.occurred("the set is created again", sets == 2);
            check.occurred("old pods are still there", it.names(62_000).len() == 3);
            let uid = it.set("web", it.end()).map(|it| it.uid.clone());
            for ordinal in 0..3 {
                let pod = format!("web-{ordinal}");
                check.equal(&pod, it.incarnations(&pod), 2);
            }
            for revision in it.revisions(it.end()) {
                let owner = revision.controller.as_ref().map(|it| it.uid.clone());
                check.holds("the revisions are the new set's", owner == uid);
            }
        },
    },
    Scenario {
        number: 68,
        name: "pods whose names are not canonical",
        origin: &[141_094],
        plans: || {
            let plan = begin(settings(), &SetSpec::default());
            let decoys = DECOYS.iter().fold(plan, |plan, pod| {
                let decoy = Action::Decoy {
                    set: "web".to_owned(),
                    pod: (*pod).to_owned(),
                };
                plan.at(30_000, decoy)
            });
            vec![
                decoys
                    .at(60_000, Action::scale(4))
                    .at(90_000, Action::image("b"))
                    .at(120_000, Action::scale(2))
                    .at(150_000, Action::annotate("statefulsets", "web", "x")),
            ]
        },
        expect: |it, check| {
            for pod in DECOYS {
                let decoy = it.pod(pod, 200_000);
                let orphan = decoy.is_some_and(|it| it.controller.is_none());
                check.occurred("the decoys exist", decoy.is_some());
                check.holds("the decoys are left alone", orphan);
                let mut writes = it.writes();
                check.holds("no write is about them", writes.all(|it| it.name != *pod));
            }
            let pods = it.names(it.end());
            let members = pods.iter().filter(|it| !DECOYS.contains(&it.as_str()));
            check.equal("pods", members.count(), 2);
            check.equal("revisions", it.revisions_ever(), 2);
        },
    },
    Scenario {
        number: 69,
        name: "a set's name is too long for the labels of its pods",
        origin: &[64023],
        plans: || {
            let spec = SetSpec {
                name: "w".repeat(57),
                ..SetSpec::default()
            };
            let delete = Action::Delete {
                set: spec.name.clone(),
                cascade: Cascade::Background,
            };
            vec![
                Plan::new(1, settings())
                    .at(0, Action::Create(spec))
                    .at(300_000, delete),
            ]
        },
        expect: |it, check| {
            let refused = it.refused(Verb::Create, "pods", 422);
            check.occurred("creations are refused", refused > 3);
            check.holds("the creations back off", refused < 30);
            check.holds("an event says so", it.events("FailedCreate") > 0);
            check.equal("revisions ever", it.revisions_ever(), 1);
            check.equal("revisions left", it.revisions(it.end()).len(), 0);
        },
    },
];

/// Names that no pod of the set `web` has.
const DECOYS: &[&str] = &["web-01", "web--1", "web-99999999999", "web-1-debug"];
