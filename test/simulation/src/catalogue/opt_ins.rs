//! Sets that opt in to more than upstream does.

use std::collections::BTreeMap;

use super::environment::{begin, both, pair, settings};
use super::{RunView, Scenario};
use crate::plan::OptIns;
use crate::plan::opt_ins::{HOLDS, REQUESTED, annotation, choose, hold};
use crate::plan::{Action, ClaimRetention, Plan, SetSpec, Settings};
use crate::world::NAMESPACE;

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 79,
        name: "a template that breaks the rollout is corrected in a set with repair",
        origin: &[67250],
        plans: || {
            let plan = |method: &str| {
                let chosen = [("repair", method), ("conditions", "true")];
                begin(opted(settings()), &spec(&chosen))
                    .at(60_000, Action::image("dead-pull"))
                    .at(240_000, Action::image("b"))
            };
            vec![plan("evict"), plan("delete")]
        },
        expect: |it, check| {
            let images = it.images(239_000);
            check.occurred("the first pod breaks", images == "a a dead-pull");
            check.equal("the reason", &*stalled(it, 239_000), "True ImagePull");
            check.equal("images", &*it.images(it.end()), "b b b");
            check.equal("evictions", it.evictions("web-2"), [1, 0][it.nth]);
            check.equal("deletions", it.deletions(), [3, 4][it.nth]);
            check.equal("pods down", down_max(it), 1);
        },
    },
    Scenario {
        number: 80,
        name: "an image is missing for ever in a set with repair",
        origin: &[67250],
        plans: || {
            both(|parallel| {
                let spec = SetSpec {
                    parallel,
                    ..spec(&[("repair", "delete"), ("repair-after", "10")])
                };
                begin(opted(settings()), &spec)
                    .at(60_000, Action::image("dead-1-pull"))
                    .at(1_200_000, Action::image("dead-2-pull"))
                    .at(2_400_000, Action::image("dead-3-pull"))
                    .at(3_600_000, Action::image("b"))
            })
        },
        expect: |it, check| {
            let times = it.deletion_times();
            let before = |at| times.iter().filter(|it| **it < at).count();
            let rounds = [1_200_000, 2_400_000, 3_600_000];
            let images = rounds.map(|at| it.images(at - 1_000));
            let expected = ["1", "2", "3"].map(|nth| format!("a a dead-{nth}-pull"));
            check.occurred("the image is missing", images == expected);
            check.equal("deletions", rounds.map(before), [1, 2, 3]);
            check.equal("images", &*it.images(it.end()), "b b b");
            check.equal("pods down", down_max(it), 1);
        },
    },
    Scenario {
        number: 81,
        name: "a gate holds a scale-down that deletes claims",
        origin: &[],
        plans: || {
            both(|parallel| {
                let spec = SetSpec {
                    parallel,
                    claims: 1,
                    retention: ClaimRetention::DELETE,
                    ..spec(&[("removal-gate", "example.com/drained=no")])
                };
                begin(opted(settings()), &spec)
                    .at(20_000, hold("web-1", "labels", Some(HOLDS)))
                    .at(20_000, hold("web-2", "annotations", Some(HOLDS)))
                    .at(60_000, Action::scale(1))
                    .at(120_000, hold("web-2", "annotations", None))
                    .at(180_000, hold("web-1", "labels", Some("yes")))
            })
        },
        expect: |it, check| {
            let requested = |pod: &str, at| {
                let pod = it.pod(pod, at);
                pod.is_some_and(|pod| pod.labels.contains_key(REQUESTED))
            };
            check.occurred("a removal is requested", requested("web-2", 61_000));
            // An ordered set removes one pod after the other.
            let second = requested("web-1", 119_000);
            check.equal("the other one is requested", second, it.nth == 1);
            check.equal("pods of the gate", it.names(119_000).len(), 3);
            let owners = |claim: &str, at| it.claim(claim, at).map(|it| it.owners.len());
            let owned = ["data0-web-1", "data0-web-2"].map(|claim| owners(claim, 119_000));
            // Their set alone, which takes them along when it is deleted.
            check.equal("owners of the claims", owned, [Some(1), Some(1)]);
            check.equal("pods of the other gate", it.names(179_000).len(), 2);
            check.equal("its claim", owners("data0-web-2", 179_000), None);
            check.equal("pods", it.names(it.end()).len(), 1);
            check.equal("claims", owners("data0-web-1", it.end()), None);
        },
    },
    Scenario {
        number: 82,
        name: "a rollout is paused and resumed",
        origin: &[],
        plans: || {
            vec![
                begin(opted(settings()), &spec(&[("conditions", "true")]))
                    .at(60_000, choose("web", "paused", Some("true")))
                    .at(70_000, Action::image("b"))
                    .at(90_000, Action::kill_pod(0))
                    .at(120_000, Action::scale(4))
                    .at(180_000, choose("web", "paused", None)),
            ]
        },
        expect: |it, check| {
            check.occurred("a pod is lost", it.created("web-0") == 3);
            check.equal("images of the pause", &*it.images(119_000), "a a a");
            check.equal("images after scaling", &*it.images(179_000), "a a a b");
            check.equal("the reason", &*progressing(it, 179_000), "Unknown Paused");
            check.equal("images", &*it.images(it.end()), "b b b b");
            check.equal("deletions", it.deletions(), 3);
        },
    },
    Scenario {
        number: 83,
        name: "a deadline pauses a rollout, also under a new leader",
        origin: &[],
        plans: || {
            let chosen = [("progress-deadline", "60"), ("on-deadline", "pause")];
            let plan = |plan: Plan| {
                plan.at(200_000, Action::ready(2, true))
                    .at(300_000, Action::image("b"))
            };
            let begun = begin(opted(settings()), &spec(&chosen)).at(60_000, Action::image("bad"));
            let crashed = Settings {
                lease: pair().lease,
                ..opted(settings())
            };
            let crashed = begin(crashed, &spec(&chosen))
                .at(60_000, Action::image("bad"))
                .at(80_000, Action::crash());
            vec![plan(begun), plan(crashed)]
        },
        expect: |it, check| {
            check.occurred("a crash", it.crashes() == it.nth);
            let bad = it.pod("web-2", 199_000).is_some_and(|it| !it.is_ready());
            check.occurred("web-2 is not ready", bad);
            let at_deadline = [118_000, 126_000].map(|at| stalled(it, at));
            check.holds(
                "the deadline passes a minute after the last progress",
                at_deadline == ["False PodStarting", "True ProgressDeadlineExceeded"],
            );
            check.equal("images of the pause", &*it.images(299_000), "a a bad");
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 84,
        name: "the built-in controller takes over a blocked rollout and gives back",
        origin: &[67250],
        plans: || {
            let chosen = [("repair", "delete"), ("conditions", "true")];
            let settings = Settings {
                opt_ins: Some(OptIns {
                    gates: vec![false, true],
                    may_evict: true,
                }),
                ..pair()
            };
            // The first leader has the gates. It is gone before the correction.
            vec![
                begin(settings, &spec(&chosen))
                    .at(60_000, Action::image("dead-pull"))
                    .at(100_000, Action::crash())
                    .at(240_000, Action::image("b"))
                    .at(420_000, Action::crash()),
            ]
        },
        expect: |it, check| {
            let leaders = it.leaders().into_iter();
            let gates = leaders.map(|it| it.instance == 1);
            let gates: Vec<bool> = gates.collect();
            check.occurred("both lead in turn", gates == [true, false, true]);
            let images = ["a a dead-pull", "b b b"][it.nth];
            check.equal(
                "images under the built-in one",
                &*it.images(419_000),
                images,
            );
            check.equal("images", &*it.images(it.end()), "b b b");
            let web_2 = it.deleted("web-2");
            check.equal("deletions of the broken pod", web_2, 2);
            check.equal("deletions", it.deletions(), 4);
            check.equal("pods down", down_max(it), 1);
            check.equal("the reason", &*progressing(it, it.end()), "True Settled");
        },
    },
];

/// The settings with the gates.
fn opted(settings: Settings) -> Settings {
    Settings {
        opt_ins: Some(OptIns::default()),
        ..settings
    }
}

/// A set of three pods with these choices.
fn spec(chosen: &[(&str, &str)]) -> SetSpec {
    let annotations = chosen
        .iter()
        .map(|(name, value)| (annotation(name), (*value).to_owned()));
    SetSpec {
        annotations: annotations.collect::<BTreeMap<_, _>>(),
        ..SetSpec::default()
    }
}

fn stalled(it: &RunView<'_>, at: u64) -> String {
    state(it, "Stalled", at)
}

fn progressing(it: &RunView<'_>, at: u64) -> String {
    state(it, "Progressing", at)
}

/// Returns the status and the reason of a condition.
fn state(it: &RunView<'_>, kind: &str, at: u64) -> String {
    let set = it.set("web", at);
    let found = set.and_then(|set| set.conditions.iter().find(|it| it.kind == kind));
    found.map_or_else(String::new, |it| format!("{} {}", it.status, it.reason))
}

/// The largest number of pods that were missing or not ready at once, after the first minute.
fn down_max(it: &RunView<'_>) -> usize {
    let from = it.version(59_000);
    let revisions = it.record.commits.iter().map(|it| it.entry.revision);
    let down = revisions.filter(|it| *it > from).map(|revision| {
        let pods = it.history.pods.all_at(NAMESPACE, revision);
        3_usize.saturating_sub(pods.filter(|pod| pod.is_ready()).count())
    });
    down.max().unwrap_or_default()
}
