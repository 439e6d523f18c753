//! Takeover of sets that another controller, another version, or another API server made.

use serde_json::{Value, json};

use super::Scenario;
use super::environment::{begin, pair, settings};
use crate::plan::{Action, ClaimRetention, Fault, LeaseTimes, Plan, SetSpec, Settings};
use crate::world::NEW_MEMBER;

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 72,
        name: "two versions of the controller take turns",
        origin: &[],
        plans: || [33, 34].into_iter().map(take_turns).collect(),
        expect: |it, check| {
            let leaders = it.leaders();
            check.occurred("many takeovers", leaders.len() > 8);
            let both = [0, 1].map(|number| leaders.iter().any(|it| it.instance == number));
            check.occurred("both versions lead", both == [true, true]);
            check.equal("images before", &*it.images(240_000), "b b b");
            check.equal("images", &*it.images(it.end()), "a a a");
            check.equal("revisions", it.revisions_ever(), 2);
            check.equal("deletions", it.deletions(), 6);
            check.equal(
                "writes of settled times",
                [(40_000, 99_000), (180_000, 249_000), (330_000, 450_000)]
                    .map(|(from, to)| it.writes_in(from, to)),
                [0, 0, 0],
            );
        },
    },
    Scenario {
        number: 73,
        name: "a set in the form of an older version is taken over",
        origin: &[134_773],
        plans: || [33, 34, 35].into_iter().map(take_over).collect(),
        expect: |it, check| {
            let versions = it.leaders().into_iter();
            let versions = versions.map(|leader| it.plan.settings.minor(leader.instance));
            let versions: Vec<u32> = versions.collect();
            let older = it.plan.settings.minor(FIRST_LEADER);
            check.occurred("the older version led first", versions == [older, 36]);
            let first = it.revisions(59_000).first().map(|it| it.recorded.clone());
            let has_null =
                |recorded: &Value| recorded.pointer("/metadata/creationTimestamp").is_some();
            check.occurred(
                "the form is the older one",
                first.as_ref().is_some_and(has_null) == (older == 33),
            );
            check.equal("writes of the takeover", it.writes_in(60_001, 299_000), 0);
            check.equal(
                "pods named web-0",
                it.creation_times("pods", "web-0").len(),
                2,
            );
            check.equal("revisions", it.revisions_ever(), 2);
            check.equal("deletions", it.deletions(), 3);
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 74,
        name: "an upgraded API server adds a field to templates",
        origin: &[134_773],
        plans: || {
            let upgrade = Action::fault(Fault::NewDefaults, 120_000);
            vec![
                begin(settings(), &SetSpec::default())
                    .at(60_000, upgrade)
                    .at(90_000, Action::annotate("statefulsets", "web", "x"))
                    .at(100_000, Action::crash())
                    .at(200_000, Action::annotate("statefulsets", "web", "y"))
                    .at(300_000, Action::image("b")),
            ]
        },
        expect: |it, check| {
            let member = format!("/spec/template/spec/{NEW_MEMBER}");
            let has = |at| {
                let set = it.stored("statefulsets", "web", at);
                set.pointer(&member).is_some()
            };
            let while_newer = [59_000, 120_000, 250_000].map(has);
            check.occurred(
                "the member comes and goes",
                while_newer == [false, true, false],
            );
            check.occurred("another process leads", it.leaders().len() == 2);
            check.equal("writes", it.writes_in(60_000, 299_000), 0);
            check.equal("revisions", it.revisions_ever(), 2);
            check.equal("deletions", it.deletions(), 3);
            check.equal("images", &*it.images(it.end()), "b b b");
        },
    },
    Scenario {
        number: 75,
        name: "equal revisions of an old bug, with hashes above 31 bits",
        origin: &[61998, 69967, 69400],
        plans: || {
            vec![
                Plan::new(1, settings())
                    .at(0, revision("4294967295", 1))
                    .at(0, revision("9999999999", 1))
                    .at(100, Action::Create(SetSpec::default()))
                    .at(30_000, Action::crash())
                    .at(200_000, Action::delete_pod(1))
                    .at(230_000, Action::annotate("statefulsets", "web", "x")),
            ]
        },
        expect: |it, check| {
            let revisions = it.revisions(50);
            let equal = revisions.len() == 2 && revisions[0].data == revisions[1].data;
            check.occurred("two revisions are equal", equal);
            check.occurred("another process leads", it.leaders().len() == 2);
            check.equal("revisions", it.revisions_ever(), 2);
            let used = |at| {
                let pods = it.pods(at);
                let mut names: Vec<String> = pods.iter().map(|it| it.revision.clone()).collect();
                names.dedup();
                names
            };
            check.holds("one is used", used(20_000).len() == 1);
            check.holds("and stays in use", used(it.end()) == used(20_000));
            check.equal("deletions", it.deletions(), 0);
            check.equal(
                "writes of the next process",
                it.writes_in(30_001, 199_000),
                0,
            );
        },
    },
];

/// A rollout and a rollback while the leader changes all the time, and its version with it.
fn take_turns(minor: u32) -> Plan {
    let settings = Settings {
        versions: vec![minor, 36],
        lease: LeaseTimes {
            lease: 8,
            renew: 6,
            retry: 4,
        },
        ..pair()
    };
    let plan = begin(settings, &SetSpec::default());
    let isolated = (1..20).fold(plan, |plan, nth| {
        let isolate = Fault::Isolate { instance: None };
        plan.at(nth * 20_000, Action::fault(isolate, 12_000))
    });
    isolated
        .at(100_000, Action::image("b"))
        .at(250_000, Action::image("a"))
        .at(450_000, Action::annotate("statefulsets", "web", "x"))
}

/// The instance that leads first with the seed of these plans.
const FIRST_LEADER: usize = 1;

/// A set that an older version made, and that the other instance takes over.
fn take_over(minor: u32) -> Plan {
    let settings = Settings {
        versions: vec![36, minor],
        ..pair()
    };
    let spec = SetSpec {
        claims: 1,
        retention: ClaimRetention::DELETE,
        ..SetSpec::default()
    };
    begin(settings, &spec)
        .at(60_000, Action::crash())
        .at(200_000, Action::annotate("statefulsets", "web", "x"))
        .at(300_000, Action::image("b"))
}

/// Creates a revision with the template of the default set, as an older controller did.
fn revision(hash: &str, number: u32) -> Action {
    let template: Value = json!({
        "$patch": "replace",
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{
                "image": "a",
                "imagePullPolicy": "Always",
                "name": "main",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 10,
        },
    });
    Action::CreateObject {
        resource: "controllerrevisions".to_owned(),
        object: json!({
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": format!("web-{hash}"),
                "labels": {"app": "web", "controller.kubernetes.io/hash": hash},
            },
            "revision": number,
            "data": {"spec": {"template": template}},
        }),
    }
}
