//! Claims.

use kube_test_control_plane::route::Verb;
use serde_json::{Value, json};

use super::Scenario;
use super::environment::{begin, settings};
use crate::plan::{Action, Cascade, ClaimRetention, Millis, Plan, Retain, SetSpec, Settings, Span};

const CLAIMS: &str = "persistentvolumeclaims";

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        number: 54,
        name: "a user deletes a claim, then its pod",
        origin: &[74374, 83282],
        plans: || {
            vec![
                begin(settings(), &claims(ClaimRetention::default()))
                    .at(60_000, Action::delete_claim("data0-web-1"))
                    .at(62_000, Action::delete_pod(1)),
            ]
        },
        expect: |it, check| {
            let waits = it
                .claim("data0-web-1", 61_000)
                .is_some_and(|it| it.terminating);
            check.occurred("the claim waits for its pod", waits);
            let claim = it.creation_times(CLAIMS, "data0-web-1").get(1).copied();
            let pod = it.creation_times("pods", "web-1").get(1).copied();
            check.holds(
                "the claim comes before the pod",
                claim.is_some() && claim <= pod,
            );
            let gone = it.gone(CLAIMS, "data0-web-1").first().copied();
            check.holds(
                "the pod waits until the claim is gone",
                gone.is_some() && gone <= pod,
            );
            check.equal("pods named web-1", it.incarnations("web-1"), 2);
        },
    },
    Scenario {
        number: 55,
        name: "the claim of a pending pod is lost",
        origin: &[89910, 113_139],
        plans: || {
            let settings = Settings {
                pod_start: Span(20_000, 20_000),
                ..settings()
            };
            vec![
                begin(settings, &claims(ClaimRetention::default()))
                    .at(5_000, Action::delete_claim("data0-web-0"))
                    .at(5_001, Action::edit(CLAIMS, "data0-web-0", unprotected()))
                    .at(6_000, Action::annotate("pods", "web-0", "x")),
            ]
        },
        expect: |it, check| {
            let pending = it
                .pod("web-0", 5_500)
                .is_some_and(|it| it.phase == "Pending");
            check.occurred("web-0 is pending", pending);
            let lost = it.claim("data0-web-0", 5_500).is_none();
            check.occurred("its claim is gone", lost);
            check.equal("claims", it.creation_times(CLAIMS, "data0-web-0").len(), 2);
            check.equal("pods named web-0", it.incarnations("web-0"), 1);
        },
    },
    Scenario {
        number: 56,
        name: "the retention policy changes back and forth around a scale-down and a deletion",
        origin: &[],
        plans: || {
            let keep = ClaimRetention::default();
            let delete = ClaimRetention::DELETE;
            let changed = |from, to| {
                begin(settings(), &claims(from))
                    .at(60_000, Action::retain(to))
                    .at(65_000, Action::scale(1))
                    .at(65_020, Action::retain(from))
                    .at(65_040, Action::retain(to))
                    .at(90_000, Action::scale(2))
                    .at(120_000, Action::delete(Cascade::Foreground))
                    .at(150_000, Action::annotate("pods", "web-0", "x"))
            };
            vec![changed(delete, keep), changed(keep, delete)]
        },
        expect: |it, check| {
            let first = it.set("web", 1_000).map(|it| it.retention);
            let last = it.set("web", 119_000).map(|it| it.retention);
            check.occurred("the retention changed", first != last);
            let left =
                (0..3).filter(|nth| it.claim(&format!("data0-web-{nth}"), it.end()).is_some());
            let left: Vec<u32> = left.collect();
            if it.nth == 0 {
                check.equal("claims left", left.len(), 3);
            } else {
                check.equal("claims left", left.len(), 0);
            }
        },
    },
    Scenario {
        number: 57,
        name: "claims that have other owners already",
        origin: &[122_400],
        plans: || {
            // The garbage collector would collect what only refers to objects that are gone.
            let settings = Settings {
                collector_delay: Millis(36_000_000),
                ..settings()
            };
            let take = Action::TakeClaim {
                claim: "data0-web-0".to_owned(),
            };
            let plan = begin(settings, &claims(ClaimRetention::default()));
            vec![
                plan.at(30_000, take)
                    .at(30_000, own("data0-web-1", "example.com/v1", "Note"))
                    .at(30_000, own("data0-web-2", "apps/v1", "StatefulSet"))
                    .at(60_000, Action::retain(ClaimRetention::DELETE))
                    .at(90_000, Action::retain(ClaimRetention::default())),
            ]
        },
        expect: |it, check| {
            let uid = it
                .set("web", 50_000)
                .map(|it| it.uid.clone())
                .unwrap_or_default();
            let owners = |nth, at| {
                let claim = it.claim(&format!("data0-web-{nth}"), at);
                let owners = claim.map(|it| it.owners.clone()).unwrap_or_default();
                let own = owners.iter().filter(|it| it.uid == uid).count();
                (owners.len(), own)
            };
            for nth in 0..3 {
                check.occurred("others own the claims", owners(nth, 50_000) == (1, 0));
                check.equal("owners at the end", owners(nth, it.end()), (1, 0));
            }
            check.equal("owners of a foreign claim", owners(0, 80_000), (1, 0));
            check.equal("owners of a noted claim", owners(1, 80_000), (2, 1));
            check.equal(
                "owners of a claim of an earlier set",
                owners(2, 80_000),
                (1, 0),
            );
        },
    },
    Scenario {
        number: 58,
        name: "a scale-up needs a claim that is about to be deleted",
        origin: &[],
        // As version 1.36: the end of a claim wakes no set. The resync does.
        plans: || {
            let settings = Settings {
                collector_delay: Millis(30_000),
                resync: Some(300),
                ..settings()
            };
            vec![
                begin(settings, &claims(ClaimRetention::DELETE))
                    .at(60_000, Action::scale(2))
                    .at(62_000, Action::scale(3)),
            ]
        },
        expect: |it, check| {
            let gone = it.gone(CLAIMS, "data0-web-2").first().copied();
            check.occurred("the claim goes late", gone.is_some_and(|at| at > 85_000));
            let again = it.creation_times("pods", "web-2").get(1).copied();
            check.holds("the pod waits for it", again.is_some() && again >= gone);
            check.equal("claims", it.creation_times(CLAIMS, "data0-web-2").len(), 2);
        },
    },
    Scenario {
        number: 59,
        name: "a user kills a condemned pod while no controller runs",
        origin: &[],
        plans: || {
            let settings = Settings {
                restart: Span(60_000, 60_000),
                ..settings()
            };
            let retention = ClaimRetention {
                when_scaled: Retain::Delete,
                when_deleted: Retain::Retain,
            };
            vec![
                begin(settings, &claims(retention))
                    .at(60_000, Action::crash())
                    .at(61_000, Action::scale(2))
                    .at(62_000, Action::kill_pod(2))
                    .at(300_000, Action::scale(3)),
            ]
        },
        // As version 1.36: nothing marked the claim before its pod was gone, so it stays, and a
        // later pod gets it.
        expect: |it, check| {
            check.occurred(
                "no controller runs",
                it.syncs_in("web", 60_001, 120_000) == 0,
            );
            check.occurred(
                "another one starts",
                it.syncs_in("web", 120_000, 299_000) > 0,
            );
            check.equal("claims", it.creation_times(CLAIMS, "data0-web-2").len(), 1);
            check.equal("claims that go", it.gone(CLAIMS, "data0-web-2").len(), 0);
            check.equal("pods named web-2", it.incarnations("web-2"), 2);
        },
    },
    Scenario {
        number: 60,
        name: "two sets whose claims have the same names",
        origin: &[41153],
        plans: || {
            let create = |name: &str, template: &str| {
                let spec = SetSpec {
                    name: name.to_owned(),
                    replicas: 2,
                    retention: ClaimRetention::DELETE,
                    ..SetSpec::default()
                };
                let claim = json!({
                    "metadata": {"name": template},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                });
                let change = json!({"spec": {"volumeClaimTemplates": [claim]}});
                Action::CreateWith { spec, change }
            };
            let scale = Action::Scale {
                set: "b-c".to_owned(),
                replicas: 1,
            };
            let delete = Action::Delete {
                set: "b-c".to_owned(),
                cascade: Cascade::Background,
            };
            vec![
                Plan::new(1, settings())
                    .at(0, create("c", "a-b"))
                    .at(20_000, create("b-c", "a"))
                    .at(60_000, scale)
                    .at(90_000, delete),
            ]
        },
        expect: |it, check| {
            let pod = it.pod("b-c-1", 50_000).map(|it| it.claims.clone());
            let shared = pod == Some(vec!["a-b-c-1".to_owned()]);
            check.occurred("two pods share a claim", shared);
            check.occurred("the second set is gone", it.set("b-c", it.end()).is_none());
            for claim in ["a-b-c-0", "a-b-c-1"] {
                check.equal(claim, it.creation_times(CLAIMS, claim).len(), 1);
                check.equal(claim, it.gone(CLAIMS, claim).len(), 0);
            }
            check.holds("an event says so", it.events("ConflictingController") > 0);
        },
    },
    Scenario {
        number: 61,
        name: "claims of a parallel burst get the selector's labels, each its own",
        origin: &[121_142],
        plans: || {
            let spec = SetSpec {
                parallel: true,
                replicas: 10,
                claims: 2,
                ..SetSpec::default()
            };
            vec![begin(settings(), &spec)]
        },
        expect: |it, check| {
            let created = it.done(Verb::Create, "pods");
            let first = created.first().map_or(0, |it| it.sent.as_millis());
            let burst = created
                .iter()
                .filter(|it| it.sent.as_millis() < first + 1_000);
            check.occurred("the pods come in a burst", burst.count() == 10);
            for nth in 0..20 {
                let claim = format!("data{}-web-{}", nth / 10, nth % 10);
                let labels = it.stored(CLAIMS, &claim, it.end());
                let labels = labels.pointer("/metadata/labels").cloned();
                check.holds(&claim, labels == Some(json!({"app": "web"})));
            }
            let set = it.stored("statefulsets", "web", it.end());
            let selector = set.pointer("/spec/selector/matchLabels").cloned();
            check.holds(
                "the selector stays",
                selector == Some(json!({"app": "web"})),
            );
        },
    },
];

/// A set with one claim for each pod.
fn claims(retention: ClaimRetention) -> SetSpec {
    SetSpec {
        claims: 1,
        retention,
        ..SetSpec::default()
    }
}

/// Removes all finalizers.
fn unprotected() -> Value {
    json!({"metadata": {"finalizers": []}})
}

/// Gives a claim an owner that doesn't control it.
fn own(claim: &str, version: &str, kind: &str) -> Action {
    let owner: Value = json!({
        "apiVersion": version,
        "kind": kind,
        "name": "web",
        "uid": "99999999-2222-4333-8444-555555555555",
    });
    let change = json!({"metadata": {"ownerReferences": [owner]}});
    Action::edit(CLAIMS, claim, change)
}
