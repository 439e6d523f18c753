//! Changes that are undone before the controller looks.

use kube_test_control_plane::route::Verb;
use serde_json::json;

use super::Scenario;
use super::environment::{begin, both, freeze, settings, watch};
use crate::plan::{Action, ClaimRetention, SetSpec, WatchFault};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 23,
        name: "a pod is briefly unready, which the cache doesn't show",
        origin: &[],
        plans: || {
            both(|parallel| {
                let spec = SetSpec {
                    parallel,
                    ..SetSpec::default()
                };
                begin(settings(), &spec)
                    .at(60_000, freeze(Some("pods"), 10_000))
                    .at(62_000, Action::ready(1, false))
                    .at(64_000, Action::ready(1, true))
                    .at(65_000, Action::scale(4))
                    .at(80_000, Action::image("b"))
            })
        },
        expect: |it, check| {
            let unready = it.pod("web-1", 63_500);
            check.occurred("web-1 is unready", unready.is_some_and(|it| !it.is_ready()));
            let again = it.pod("web-1", 66_000);
            check.occurred(
                "web-1 is ready again",
                again.is_some_and(|it| it.is_ready()),
            );
            check.equal("pods named web-3", it.incarnations("web-3"), 2);
            check.equal("images", &*it.images(it.end()), "b b b b");
        },
    },
    Scenario {
        number: 24,
        name: "another writer replaces a pod while its events are lost",
        origin: &[],
        plans: || {
            let stranger = json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "web-2", "labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "stranger"}]},
            });
            let create = Action::CreateObject {
                resource: "pods".to_owned(),
                object: stranger,
            };
            vec![
                begin(settings(), &SetSpec::default())
                    .at(60_000, freeze(Some("pods"), 30_000))
                    .at(61_000, Action::kill_pod(2))
                    .at(62_000, create)
                    .at(63_000, Action::image("b")),
            ]
        },
        expect: |it, check| {
            let old = it.pod("web-2", 60_000);
            check.occurred("the old pod is known", old.is_some());
            let first = it.sent(Verb::Delete, "pods").first().copied();
            let hits = first.is_some_and(|it| it.name == "web-2" && it.status == Some(409));
            check.occurred("a deletion of the old pod meets the new one", hits);
            let stays = it
                .pod("web-2", 89_000)
                .is_some_and(|it| it.image == "stranger");
            check.holds("the new pod stays until it is known", stays);
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 25,
        name: "a scale-up is reverted before the controller sees it",
        origin: &[],
        plans: || {
            let spec = SetSpec {
                claims: 1,
                retention: ClaimRetention::DELETE,
                ..SetSpec::default()
            };
            vec![
                begin(settings(), &spec)
                    .at(60_000, freeze(Some("statefulsets"), 10_000))
                    .at(61_000, Action::scale(5))
                    .at(61_001, Action::scale(3)),
            ]
        },
        expect: |it, check| {
            let known = it.set("web", it.end()).map_or(0, |it| it.generation);
            check.occurred("the set changed twice", known == 3);
            check.equal("deletions", it.deletions(), 0);
            check.equal("pods named web-3", it.incarnations("web-3"), 0);
            let changed = it.sent(Verb::Update, "persistentvolumeclaims");
            let changed = changed.iter().filter(|it| it.sent.as_millis() > 60_000);
            check.equal("claims changed", changed.count(), 0);
        },
    },
    Scenario {
        number: 26,
        name: "a template change is reverted before the controller sees it",
        origin: &[],
        plans: || {
            vec![
                begin(settings(), &SetSpec::default())
                    .at(60_000, freeze(Some("statefulsets"), 10_000))
                    .at(61_000, Action::image("b"))
                    .at(61_001, Action::image("a")),
            ]
        },
        expect: |it, check| {
            let known = it.set("web", it.end()).map_or(0, |it| it.generation);
            check.occurred("the set changed twice", known == 3);
            check.equal("deletions", it.deletions(), 0);
            check.equal("revisions", it.revisions_ever(), 1);
        },
    },
    Scenario {
        number: 27,
        name: "pods disappear before the cache shows them terminating",
        origin: &[],
        plans: || {
            vec![
                begin(settings(), &SetSpec::default())
                    .at(60_000, freeze(Some("pods"), 10_000))
                    .at(61_000, Action::kill_pod(1))
                    .at(62_000, Action::kill_pod(0)),
            ]
        },
        expect: |it, check| {
            let gone = it.names(63_000) == ["web-2"];
            check.occurred("both pods are gone at once", gone);
            check.equal("pods named web-0", it.incarnations("web-0"), 2);
            check.equal("pods named web-1", it.incarnations("web-1"), 2);
            let again = |pod| it.creation_times("pods", pod).get(1).copied();
            let in_order = again("web-0").is_some_and(|at| again("web-1") >= Some(at + 1_500));
            check.holds("web-1 comes once web-0 is ready", in_order);
        },
    },
    Scenario {
        number: 28,
        name: "the event of a deletion is lost with its watch",
        origin: &[],
        plans: || {
            let other = SetSpec {
                name: "db".to_owned(),
                ..SetSpec::default()
            };
            vec![
                begin(settings(), &SetSpec::default())
                    .at(0, Action::Create(other))
                    .at(60_000, freeze(Some("pods"), 5_000))
                    .at(61_000, Action::kill_pod(1))
                    .at(64_000, watch(Some("pods"), WatchFault::Expire, 3_000)),
            ]
        },
        expect: |it, check| {
            let lists = it.record.requests.iter();
            let lists = lists.filter(|it| it.verb == Some(Verb::List) && it.resource == "pods");
            check.occurred("the pods are listed again", lists.count() > 1);
            let again = it.creation_times("pods", "web-1").get(1).copied();
            let soon = again.is_some_and(|at| (61_000..75_000).contains(&at));
            check.holds("web-1 is created again", soon);
            let mut writes = it.writes().filter(|it| it.sent.as_millis() > 60_000);
            check.holds(
                "nothing is written for db",
                writes.all(|it| !it.name.starts_with("db")),
            );
        },
    },
];
