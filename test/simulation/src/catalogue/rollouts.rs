//! Rollouts and scaling.

use serde_json::{Value, json};

use super::Scenario;
use super::environment::{begin, both, settings};
use crate::plan::{Action, Fault, MaxUnavailable, Plan, SetSpec, Settings, Span, UpdateMode};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 38,
        name: "the first image never becomes ready, and is corrected",
        origin: &[67250, 88896, 60164, 137_409],
        plans: || {
            both(|parallel| {
                let spec = SetSpec {
                    parallel,
                    image: "bad".to_owned(),
                    ..SetSpec::default()
                };
                begin(without_gate(), &spec)
                    .at(60_000, Action::image("b"))
                    .at(180_000, Action::delete_pod(0))
                    .at(240_000, Action::annotate("statefulsets", "web", "x"))
            })
        },
        expect: |it, check| {
            let bad = it.pod("web-0", 59_000).is_some_and(|it| !it.is_ready());
            check.occurred("web-0 is not ready", bad);
            let generation = it.set("web", 179_000).map(|it| it.generation);
            check.occurred("the image is corrected", generation == Some(2));
            // An ordered set stays stuck until a user deletes its pod.
            let stuck = ["bad", "b b b"][it.nth];
            check.equal("images after the correction", &*it.images(179_000), stuck);
            check.equal(
                "images once web-0 is deleted",
                &*it.images(240_000),
                "b b b",
            );
        },
    },
    Scenario {
        number: 39,
        name: "a broken pod below the partition uses up the budget",
        origin: &[137_409],
        plans: || {
            let plan = |max| {
                let spec = SetSpec {
                    parallel: true,
                    replicas: 5,
                    partition: Some(1),
                    max_unavailable: Some(max),
                    ..SetSpec::default()
                };
                begin(settings(), &spec)
                    .at(50_000, Action::ready(0, false))
                    .at(60_000, Action::image("b"))
                    .at(180_000, Action::ready(0, true))
                    .at(240_000, Action::annotate("statefulsets", "web", "x"))
            };
            let percent = MaxUnavailable::Percent("30%".to_owned());
            vec![plan(MaxUnavailable::Pods(2)), plan(percent)]
        },
        expect: |it, check| {
            let broken = it.pod("web-0", 179_000).is_some_and(|it| !it.is_ready());
            check.occurred("web-0 is broken", broken);
            let meanwhile = ["a b b b b", "a a a a a"][it.nth];
            check.equal("images meanwhile", &*it.images(179_000), meanwhile);
            check.equal("images afterwards", &*it.images(240_000), "a b b b b");
        },
    },
    Scenario {
        number: 40,
        name: "updated pods become unready during a rollout of two at a time",
        origin: &[],
        plans: || {
            let spec = SetSpec {
                replicas: 5,
                max_unavailable: Some(MaxUnavailable::Pods(2)),
                ..SetSpec::default()
            };
            vec![
                begin(settings(), &spec)
                    .at(60_000, Action::image("b"))
                    .at(62_200, Action::ready(3, false))
                    .at(72_000, Action::ready(3, true))
                    .at(72_500, Action::ready(4, false))
                    .at(80_000, Action::ready(4, true)),
            ]
        },
        expect: |it, check| {
            let flaps = it.pod("web-3", 65_000);
            let flaps = flaps.is_some_and(|it| it.image == "b" && !it.is_ready());
            check.occurred("an updated pod is unready", flaps);
            let early = it
                .deletion_times()
                .iter()
                .filter(|it| **it < 62_200)
                .count();
            check.occurred("the roll goes on afterwards", early < 5);
            check.equal("deletions", it.deletions(), 5);
            check.equal("images", &*it.images(it.end()), "b b b b b");
        },
    },
    Scenario {
        number: 41,
        name: "a user deletes a pod while another one is updated",
        origin: &[70442, 119_685],
        plans: || {
            let plan = |partition| {
                let spec = SetSpec {
                    partition,
                    ..SetSpec::default()
                };
                begin(settings(), &spec)
                    .at(60_000, Action::image("b"))
                    .at(60_100, Action::delete_pod(0))
            };
            vec![plan(None), plan(Some(1))]
        },
        expect: |it, check| {
            let stops = it.pod("web-2", 60_100).is_some_and(|it| it.terminating);
            check.occurred("web-2 stops", stops);
            check.equal("pods named web-0", it.incarnations("web-0"), 2);
            let images = ["b b b", "a b b"][it.nth];
            check.equal("images", &*it.images(it.end()), images);
        },
    },
    Scenario {
        number: 42,
        name: "a set with a partition is scaled to zero and back",
        origin: &[121_534],
        plans: || {
            let spec = SetSpec {
                replicas: 4,
                partition: Some(2),
                ..SetSpec::default()
            };
            vec![
                begin(settings(), &spec)
                    .at(60_000, Action::image("b"))
                    .at(90_000, Action::scale(0))
                    .at(120_000, Action::scale(2)),
            ]
        },
        // As version 1.36: without pods the update is complete with any partition.
        expect: |it, check| {
            check.occurred("two pods are old", it.images(89_000) == "a a b b");
            check.occurred("no pods are left", it.names(119_000).is_empty());
            check.equal("images", &*it.images(it.end()), "b b");
        },
    },
    Scenario {
        number: 43,
        name: "a raised partition brings the old revision back, volumes included",
        origin: &[91676],
        plans: || {
            let template = |image: &str, volume: &str| {
                let containers = json!([{"name": "main", "image": image}]);
                let volumes = json!([{"name": volume, "emptyDir": {}}]);
                json!({"containers": containers, "volumes": volumes})
            };
            let spec = |template: Value| json!({"spec": {"template": {"spec": template}}});
            let set = SetSpec {
                partition: Some(2),
                ..SetSpec::default()
            };
            let create = Action::CreateWith {
                spec: set,
                change: spec(template("a", "cache")),
            };
            let new = spec(template("b", "scratch"));
            vec![
                Plan::new(1, settings())
                    .at(0, create)
                    .at(60_000, Action::edit("statefulsets", "web", new))
                    .at(90_000, Action::partition(3))
                    .at(91_000, Action::delete_pod(2)),
            ]
        },
        expect: |it, check| {
            check.occurred("web-2 is new", it.images(89_000) == "a a b");
            check.equal("images", &*it.images(it.end()), "a a a");
            let pod = it.stored("pods", "web-2", it.end());
            let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
            let names = volumes
                .into_iter()
                .flatten()
                .filter_map(|it| it.get("name"));
            let names: Vec<&Value> = names.collect();
            check.holds("its volume is the old one", names == [&json!("cache")]);
        },
    },
    Scenario {
        number: 44,
        name: "a partition counts from the first ordinal",
        origin: &[128_529],
        plans: || {
            let spec = SetSpec {
                start: 2,
                replicas: 9,
                partition: Some(5),
                ..SetSpec::default()
            };
            vec![begin(settings(), &spec).at(60_000, Action::image("b"))]
        },
        expect: |it, check| {
            check.occurred("the template changes", it.revisions_ever() == 2);
            for ordinal in 2..11 {
                let pod = format!("web-{ordinal}");
                let image = it.pod(&pod, it.end()).map(|it| it.image.as_str());
                let wanted = if ordinal < 7 { "a" } else { "b" };
                check.equal(&pod, image, Some(wanted));
            }
            check.equal("deletions", it.deletions(), 4);
        },
    },
    Scenario {
        number: 45,
        name: "a template goes back and forth 20 times in a minute",
        origin: &[78209],
        plans: || {
            let pair = SetSpec {
                replicas: 2,
                ..SetSpec::default()
            };
            let plan = begin(settings(), &pair);
            let flips = (0..20).fold(plan, |plan, nth| {
                let image = ["b", "a"][usize::from(nth % 2 == 1)];
                plan.at(60_000 + nth * 3_000, Action::image(image))
            });
            vec![flips.at(121_000, Action::image("b"))]
        },
        expect: |it, check| {
            let generation = it.set("web", it.end()).map(|it| it.generation);
            check.occurred("all changes are stored", generation == Some(22));
            check.holds("few deletions", it.deletions() <= 40);
            check.equal("revisions", it.revisions_ever(), 2);
            check.equal("images", &*it.images(it.end()), "b b");
        },
    },
    Scenario {
        number: 46,
        name: "users delete the pods of a set with the strategy OnDelete",
        origin: &[73492, 106_055],
        plans: || {
            let spec = SetSpec {
                update: UpdateMode::OnDelete,
                ..SetSpec::default()
            };
            vec![
                begin(settings(), &spec)
                    .at(60_000, Action::image("b"))
                    .at(90_000, Action::delete_pod(1))
                    .at(120_000, Action::delete_pod(0))
                    .at(150_000, Action::delete_pod(2)),
            ]
        },
        expect: |it, check| {
            check.occurred("web-1 is new", it.images(110_000) == "a b a");
            check.equal("deletions", it.deletions(), 0);
            let counts = |at| {
                let set = it.set("web", at)?;
                Some((set.status.updated, set.status.current))
            };
            check.equal("counts before", counts(80_000), Some((0, 3)));
            check.equal("counts after the first", counts(110_000), Some((1, 2)));
            check.equal("counts after the second", counts(140_000), Some((2, 1)));
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 47,
        name: "an ordered set is scaled up and down while pods stop",
        origin: &[44684],
        plans: || {
            let settings = Settings {
                pod_stop: Span(5_000, 5_000),
                ..settings()
            };
            let spec = SetSpec {
                replicas: 5,
                grace: 30,
                ..SetSpec::default()
            };
            let plan = begin(settings, &spec);
            let sizes = [2, 5, 1, 4, 0, 3, 5, 4];
            let scaled = (0..).zip(sizes).fold(plan, |plan, (nth, size)| {
                plan.at(60_000 + nth * 2_000, Action::scale(size))
            });
            vec![scaled]
        },
        expect: |it, check| {
            let stops = it.pod("web-4", 62_500).is_some_and(|it| it.terminating);
            check.occurred("web-4 stops while it is wanted", stops);
            check.occurred("web-4 is created again", it.incarnations("web-4") > 1);
            check.equal("pods", it.names(it.end()).len(), 4);
            check.equal("pods named web-0", it.incarnations("web-0"), 1);
        },
    },
    Scenario {
        number: 48,
        name: "pods must stay ready for 30 seconds",
        origin: &[113_878, 123_918, 112_307, 136_831],
        plans: || {
            let spec = SetSpec {
                min_ready_seconds: 30,
                ..SetSpec::default()
            };
            vec![
                begin(settings(), &spec)
                    .at(150_000, Action::scale(4))
                    .at(160_000, Action::scale(3))
                    .at(200_000, Action::image("b")),
            ]
        },
        expect: |it, check| {
            let spacing = it.spacing("web-0", "web-1");
            check.holds("web-1 waits once", (30_500..34_000).contains(&spacing));
            let ready = it.pod("web-3", 159_000).is_some_and(|it| it.is_ready());
            check.occurred("web-3 is ready", ready);
            let gone = it.gone("pods", "web-3").first().copied();
            check.holds("web-3 goes at once", gone.is_some_and(|at| at < 162_000));
            let deleted = it.deletion_times();
            let rolls: Vec<u64> = deleted.into_iter().filter(|it| *it > 200_000).collect();
            let waits = rolls.windows(2).all(|it| it[1] - it[0] > 30_000);
            check.holds("the roll waits for each pod", waits && rolls.len() == 3);
            // As version 1.36: the update is complete once all pods are ready.
            let last = rolls.last().copied().unwrap_or_default();
            let set = it.set("web", last + 10_000).map(|it| &it.status);
            let early = set.is_some_and(|it| it.current_revision == it.update_revision);
            check.holds("the update is complete early", early);
        },
    },
    Scenario {
        number: 49,
        name: "the controller's clock is two minutes ahead or behind",
        origin: &[77203, 108_266],
        plans: || {
            let plan = |millis| {
                let spec = SetSpec {
                    replicas: 2,
                    min_ready_seconds: 30,
                    ..SetSpec::default()
                };
                let skew = Fault::Skew {
                    instance: 0,
                    millis,
                };
                begin(settings(), &spec)
                    .at(0, Action::fault(skew, 600_000))
                    .at(500_000, Action::annotate("statefulsets", "web", "x"))
            };
            vec![plan(120_000), plan(-120_000)]
        },
        expect: |it, check| {
            let spacing = it.spacing("web-0", "web-1");
            // Ahead, the seconds are over at once; behind, they begin two minutes later.
            let expected = [1_000..3_000, 150_000..160_000][it.nth].clone();
            check.holds("the delay follows the skew", expected.contains(&spacing));
            let available = it.set("web", 490_000).map(|it| it.status.available);
            check.equal("available pods", available, Some(2));
        },
    },
];

/// The environment without the feature gate of `maxUnavailable`, as version 1.36 by default.
fn without_gate() -> Settings {
    Settings {
        max_unavailable: false,
        ..settings()
    }
}
