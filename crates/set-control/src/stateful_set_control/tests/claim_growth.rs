//! Claims that grow to the sizes that their set asks for.

use std::time::Duration;

use statefulset_controller_util::stateful_set::Condition;
use statefulset_opt_ins::{Carrier, ClaimState, Wait};

use super::*;

/// A change of a claim.
type ClaimChange = fn(&mut Value);
/// A change of a set.
type SetChange = fn(Builder<StatefulSet>) -> Builder<StatefulSet>;

/// A set whose claims of one gibibyte are to have this size.
fn grown(size: &str) -> Builder<StatefulSet> {
    let set = web().claim_template("data");
    set.annotation(Carrier::ClaimSize.annotation(), size)
}

fn with_pod(set: Builder<StatefulSet>) -> Builder<StatefulSet> {
    set.annotation(Carrier::ClaimResize.annotation(), "with-pod")
}

/// A settled world whose claims have volumes of one gibibyte, and whose set then asks for this size.
async fn settled(set: &Builder<StatefulSet>) -> World {
    settled_with(set, FeatureGates::default().with_opt_ins()).await
}

async fn settled_with(set: &Builder<StatefulSet>, gates: FeatureGates) -> World {
    let asked = set.build();
    let mut world = with_gates(&web().claim_template("data"), gates);
    world.update(|set| {
        set.spec = asked.spec.clone();
    });
    world.settle().await;
    world.bind_all();
    world.update(|set| set.metadata = Arc::clone(&asked.metadata));
    world
}

impl World {
    /// Gives each claim a volume of the requested size.
    fn bind_all(&self) {
        for claim in self.claims() {
            self.expand(&claim.name);
        }
    }

    /// Completes the expansion of a claim.
    fn expand(&self, claim: &str) {
        self.change_claim(claim, |claim| {
            let capacity = claim["spec"]["resources"]["requests"].clone();
            claim["status"] = json!({"phase": "Bound", "capacity": capacity});
        });
    }

    /// Adds a condition to a claim.
    fn report(&self, claim: &str, condition: &str, since: &str) {
        self.change_claim(claim, |claim| {
            let condition =
                json!({"type": condition, "status": "True", "lastTransitionTime": since});
            claim["status"]["conditions"] = json!([condition]);
        });
    }

    fn change_claim(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut claim = self.claim(name).unwrap();
        change(&mut claim);
        self.objects.claims.put(claim);
    }

    /// Returns the requests of the claims `data-web-0` to `data-web-2`.
    fn sizes(&self) -> String {
        let size = |ordinal| {
            let claim = self.claim(&format!("data-web-{ordinal}")).unwrap();
            claim["spec"]["resources"]["requests"]["storage"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        [0, 1, 2].map(size).join(" ")
    }

    fn resized(&self) -> Option<Condition> {
        self.set.status.conditions.as_ref()?.get("ClaimsResized")
    }

    fn reason(&self) -> String {
        let condition = self.resized();
        condition.map_or_else(String::new, |it| format!("{} {}", it.status, it.reason))
    }
}

fn forbidden(why: &str) -> ApiError {
    let message = format!("persistentvolumeclaims \"data-web-2\" is forbidden: {why}");
    ApiError::api(403, "Forbidden", message)
}

fn class_forbids() -> ApiError {
    forbidden(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions \
         the pvc must support resize",
    )
}

#[tokio::test]
async fn claims_grow_one_after_the_other_from_the_largest_ordinal() {
    let mut world = settled(&grown("data=3Gi")).await;
    for (sizes, reason, claim) in [
        ("1Gi 1Gi 3Gi", "False Growing", "data-web-2"),
        ("1Gi 3Gi 3Gi", "False Growing", "data-web-1"),
        ("3Gi 3Gi 3Gi", "False Growing", "data-web-0"),
    ] {
        for _ in 0..3 {
            assert_eq!(world.step().await, None);
        }
        assert_eq!((&*world.sizes(), &*world.reason()), (sizes, reason));
        let outcome = world.sync().await;
        let growth = outcome.growth.unwrap();
        let awaited: Vec<&str> = growth.awaited.iter().map(|it| &*it.name).collect();
        assert_eq!(awaited, [claim]);
        world.expand(claim);
    }
    world.step().await;
    assert_eq!(world.reason(), "True AllClaimsResized");
    assert_eq!(world.requests(Call::UpdateClaim), 3);
    assert_eq!(world.requests(Call::DeletePod), 0);
    let message = &world.resized().unwrap().message;
    assert_eq!(
        &**message,
        "3 of 3 claims have the size that the set asks for"
    );
}

#[tokio::test]
async fn claims_of_as_many_pods_as_may_be_unavailable_grow_at_once() {
    let gates = FeatureGates::default()
        .with_opt_ins()
        .max_unavailable_stateful_set(true);
    let set = grown("data=3Gi").max_unavailable(2);
    let mut world = settled_with(&set, gates).await;
    world.step().await;
    assert_eq!(world.sizes(), "1Gi 3Gi 3Gi");
    world.expand("data-web-1");
    world.step().await;
    assert_eq!(world.sizes(), "3Gi 3Gi 3Gi");
}

#[tokio::test]
async fn new_claims_have_the_larger_size() {
    for (asked, expected) in [("data=3Gi", "3Gi"), ("data=1Mi", "1Gi")] {
        let mut world = opted_in(&grown(asked));
        world.settle().await;
        assert_eq!(world.sizes(), [expected; 3].join(" "));
        assert_eq!(world.requests(Call::UpdateClaim), 0);
    }
}

#[tokio::test]
async fn nothing_changes_without_gate_or_annotation() {
    for (set, gates) in [
        (grown("data=3Gi"), FeatureGates::default()),
        (
            web().claim_template("data"),
            FeatureGates::default().with_opt_ins(),
        ),
        (
            grown("data=3Gi,wal=1Gi"),
            FeatureGates::default().with_opt_ins(),
        ),
        (grown("data=much"), FeatureGates::default().with_opt_ins()),
        (
            grown("data=3Gi").annotation(Carrier::ClaimResize.annotation(), "sometimes"),
            FeatureGates::default().with_opt_ins(),
        ),
    ] {
        let mut world = settled_with(&set, gates).await;
        world.step().await;
        assert_eq!(world.sizes(), "1Gi 1Gi 1Gi");
        assert_eq!(world.resized(), None);
        assert_eq!(world.requests(Call::UpdateClaim), 0);
    }
}

#[tokio::test]
async fn condition_goes_with_the_annotation() {
    let mut world = settled(&grown("data=3Gi")).await;
    world.step().await;
    assert_eq!(world.reason(), "False Growing");
    let plain = web().claim_template("data").build();
    world.update(|set| set.metadata = plain.metadata);
    world.step().await;
    assert_eq!(world.resized(), None);
}

#[tokio::test]
async fn claims_of_missing_pods_are_not_taken_for_resized() {
    let mut world = settled(&grown("data=3Gi")).await;
    world.change_claim("data-web-0", |claim| {
        let size = json!({"storage": "3Gi"});
        claim["spec"]["resources"]["requests"] = size.clone();
        claim["status"]["capacity"] = size;
    });
    for pod in ["web-0", "web-1", "web-2"] {
        world.remove_pod(pod);
    }
    world.step().await;
    assert_eq!(world.sizes(), "3Gi 1Gi 1Gi");
    assert_eq!(world.reason(), "False Queued");
}

#[tokio::test]
async fn growing_claims_of_missing_pods_use_up_the_budget() {
    let mut world = settled(&grown("data=3Gi")).await;
    world.step().await;
    assert_eq!(world.sizes(), "1Gi 1Gi 3Gi");
    for pod in ["web-0", "web-1", "web-2"] {
        world.remove_pod(pod);
    }
    // The sync creates web-0 alone.
    let growth = world.sync().await.growth.unwrap();
    assert_eq!(world.sizes(), "1Gi 1Gi 3Gi");
    let awaited: Vec<&str> = growth.awaited.iter().map(|it| &*it.name).collect();
    assert_eq!(awaited, ["data-web-2"]);
    let message = world.resized().unwrap().message;
    let missing = "data-web-1: claims of other pods come first (its pod is missing)";
    assert!(message.contains(missing), "{message}");
    world.expand("data-web-2");
    world.run("web-0");
    world.step().await;
    assert_eq!(world.sizes(), "1Gi 3Gi 3Gi");
}

#[tokio::test]
async fn no_claim_shrinks() {
    let mut world = settled(&grown("data=512Mi")).await;
    world.step().await;
    assert_eq!(world.sizes(), "1Gi 1Gi 1Gi");
    assert_eq!(world.reason(), "False ShrinkRefused");
    assert_eq!(world.requests(Call::UpdateClaim), 0);
}

#[tokio::test]
async fn unhealthy_pods_hold_no_growth_back() {
    let mut world = settled(&grown("data=3Gi")).await;
    world.set_ready("web-0", false);
    assert_eq!(world.step().await, not_ready("web-0"));
    assert_eq!(world.sizes(), "1Gi 1Gi 3Gi");
}

#[tokio::test]
async fn refused_claim_is_reported_and_passed_over() {
    let mut world = settled(&grown("data=3Gi")).await;
    world.fail_with(Call::UpdateClaim, 0, class_forbids);
    let outcome = world.sync().await;
    assert!(outcome.error.is_none());
    // A refusal ends the turn of the budget, and the next sync goes on.
    assert_eq!(outcome.requeue_after, Some(Duration::from_secs(1)));
    assert_eq!(world.reason(), "False ClassForbids");
    let warning = world.events().remove(0);
    assert!(
        warning.starts_with("Warning ClaimGrowthRefused Claim data-web-2 doesn't grow to 3Gi: "),
        "{warning}"
    );
    let outcome = world.sync().await;
    assert_eq!(world.sizes(), "1Gi 3Gi 1Gi");
    assert_eq!(world.reason(), "False ClassForbids");
    assert_eq!(outcome.requeue_after, Some(Duration::from_secs(30)));
    let message = world.resized().unwrap().message;
    assert!(
        message.starts_with(
            "0 of 3 claims have the size that the set asks for; data-web-2: the storage class \
             forbids expansion (persistentvolumeclaims"
        ),
        "{message}"
    );

    // It is tried again after the delay, not before.
    world.expand("data-web-1");
    world.sync().await;
    assert_eq!(world.sizes(), "3Gi 3Gi 1Gi");
    world.now += jiff::SignedDuration::from_secs(31);
    world.expand("data-web-0");
    world.sync().await;
    assert_eq!(world.sizes(), "3Gi 3Gi 3Gi");
    assert_eq!(world.reason(), "False Growing");
}

#[tokio::test]
async fn status_stays_while_refused_claims_are_tried_again() {
    let mut world = settled(&grown("data=3Gi")).await;
    for _ in 0..3 {
        world.fail_with(Call::UpdateClaim, 0, class_forbids);
        world.sync().await;
    }
    let told = world.resized();
    assert_eq!(world.requests(Call::UpdateClaim), 3);
    world.now += jiff::SignedDuration::from_secs(31);
    for attempts in 4..=6 {
        world.fail_with(Call::UpdateClaim, 0, class_forbids);
        world.sync().await;
        assert_eq!(world.requests(Call::UpdateClaim), attempts);
        assert_eq!(world.resized(), told);
    }
}

#[tokio::test]
async fn delay_after_refusals_doubles_up_to_ten_minutes() {
    let mut world = settled(&grown("data=3Gi").replicas(1)).await;
    for delay in [30, 60, 120, 240, 480, 600, 600] {
        world.fail_with(Call::UpdateClaim, 0, || forbidden("exceeded quota: q"));
        let outcome = world.sync().await;
        assert_eq!(world.reason(), "False QuotaExceeded");
        assert_eq!(outcome.requeue_after, Some(Duration::from_secs(delay)));
        world.now += jiff::SignedDuration::try_from(Duration::from_secs(delay)).unwrap();
    }
    assert_eq!(world.requests(Call::UpdateClaim), 7);
    let events = world.events();
    let refused = events.iter().filter(|it| it.contains("ClaimGrowthRefused"));
    assert_eq!(
        refused.count(),
        1,
        "only a new reason is an event: {events:?}"
    );
}

#[tokio::test]
async fn missing_permission_ends_the_growth_of_the_set() {
    let mut world = settled(&grown("data=3Gi")).await;
    world.fail_with(Call::UpdateClaim, 0, || {
        let who = "User \"system:serviceaccount:a:b\" cannot update resource";
        let message = format!("persistentvolumeclaims \"data-web-2\" is forbidden: {who}");
        ApiError::api(403, "Forbidden", message)
    });
    let outcome = world.sync().await;
    assert!(outcome.error.is_none());
    assert_eq!(outcome.requeue_after, Some(Duration::from_secs(30)));
    world.sync().await;
    assert_eq!(world.sizes(), "1Gi 1Gi 1Gi");
    assert_eq!(world.reason(), "False MissingPermission");
    world.now += jiff::SignedDuration::from_secs(31);
    world.sync().await;
    assert_eq!(world.sizes(), "1Gi 1Gi 3Gi");
    assert_eq!(world.reason(), "False Growing");
}

#[tokio::test]
async fn failure_of_the_server_is_an_error_of_the_sync() {
    let mut world = settled(&grown("data=3Gi")).await;
    world.fail(Call::UpdateClaim, 0);
    let error = world.sync_error().await;
    assert_eq!(
        error,
        format!("could not let claim data-web-2 grow to 3Gi: {INJECTED}")
    );
    assert_eq!(world.resized(), None);
    world.step().await;
    assert_eq!(world.sizes(), "1Gi 1Gi 3Gi");
}

#[tokio::test]
async fn claim_that_changes_meanwhile_keeps_its_turn() {
    let mut world = settled(&grown("data=3Gi")).await;
    world.fail_with(Call::UpdateClaim, 0, || {
        ApiError::api(409, "Conflict", "changed")
    });
    let outcome = world.sync().await;
    assert!(outcome.error.is_none());
    assert_eq!(outcome.requeue_after, Some(Duration::from_secs(1)));
    assert_eq!(world.sizes(), "1Gi 1Gi 1Gi");
    world.step().await;
    assert_eq!(world.sizes(), "1Gi 1Gi 3Gi");
}

#[tokio::test]
async fn claim_of_another_owner_is_left_alone() {
    for foreign in ["labels", "controller"] {
        let mut world = settled(&grown("data=3Gi")).await;
        world.change_claim("data-web-2", |claim| {
            let metadata = &mut claim["metadata"];
            if foreign == "labels" {
                metadata["labels"]["app"] = "other".into();
            } else {
                let owner = json!({"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x",
                    "controller": true});
                metadata["ownerReferences"] = json!([owner]);
            }
        });
        world.step().await;
        world.step().await;
        assert_eq!(world.sizes(), "1Gi 3Gi 1Gi", "{foreign}");
        assert_eq!(world.reason(), "False NotOfSet");
    }
}

#[tokio::test]
async fn states_of_claims_decide_about_the_next_ones() {
    let terminating = |claim: &mut Value| {
        claim["metadata"]["deletionTimestamp"] = "2026-03-01T11:00:00Z".into();
    };
    let unbound = |claim: &mut Value| claim["status"] = json!({"phase": "Pending"});
    let lost = |claim: &mut Value| claim["status"]["phase"] = "Lost".into();
    let growing: ClaimChange = |claim| {
        claim["spec"]["resources"]["requests"]["storage"] = "3Gi".into();
    };
    let failing: ClaimChange = |claim| {
        claim["spec"]["resources"]["requests"]["storage"] = "3Gi".into();
        let error = json!({"type": "ControllerResizeError", "status": "True"});
        claim["status"]["conditions"] = json!([error]);
    };
    let infeasible: ClaimChange = |claim| {
        claim["spec"]["resources"]["requests"]["storage"] = "3Gi".into();
        let status = json!({"storage": "NodeResizeInfeasible"});
        claim["status"]["allocatedResourceStatuses"] = status;
    };
    let larger: ClaimChange =
        |claim| claim["spec"]["resources"]["requests"]["storage"] = "5Gi".into();
    for (change, state, goes_on) in [
        (terminating as ClaimChange, ClaimState::Terminating, true),
        (unbound, ClaimState::Unbound, true),
        (lost, ClaimState::ClaimLost, true),
        (growing, ClaimState::Growing, false),
        (failing, ClaimState::ProviderError, false),
        (infeasible, ClaimState::Infeasible, true),
        // A user's growth is under way.
        (larger, ClaimState::ShrinkRefused, false),
    ] {
        let mut world = settled(&grown("data=3Gi")).await;
        world.change_claim("data-web-2", change);
        let growth = world.sync().await.growth.unwrap();
        let found = &growth.unfinished[0];
        assert_eq!((&*found.claim, found.state), ("data-web-2", state));
        let expected = if goes_on { "3Gi" } else { "1Gi" };
        assert_eq!(world.sizes().split(' ').nth(1), Some(expected), "{state:?}");
    }
}

#[tokio::test]
async fn larger_size_is_requested_while_the_volume_grows() {
    let mut world = settled(&grown("data=3Gi")).await;
    world.step().await;
    let larger = grown("data=4Gi").build();
    world.update(|set| set.metadata = larger.metadata);
    world.step().await;
    assert_eq!(world.sizes(), "1Gi 1Gi 4Gi", "the turn of the pod goes on");
}

#[tokio::test]
async fn only_the_request_changes() {
    let mut world = settled(&grown("data=3Gi")).await;
    world.change_claim("data-web-2", |claim| {
        claim["spec"]["unknown"] = json!({"a": [1]});
        claim["metadata"]["annotations"] = json!({"a": "b"});
    });
    let mut expected = world.claim("data-web-2").unwrap();
    world.step().await;
    expected["spec"]["resources"]["requests"]["storage"] = "3Gi".into();
    assert_eq!(world.claim("data-web-2"), Some(expected));
}

/// A world whose third claim waits for the node since this time.
async fn awaiting_node(set: &Builder<StatefulSet>, since: &str) -> World {
    let mut world = settled(set).await;
    for pod in world.pods() {
        world.change_pod(&pod, |pod| {
            pod["metadata"]["creationTimestamp"] = "2026-03-01T10:00:00Z".into();
        });
    }
    world.step().await;
    world.report("data-web-2", "FileSystemResizePending", since);
    world
}

const LATER: &str = "2026-03-01T11:00:00Z";

#[tokio::test]
async fn pod_restarts_only_if_the_set_asks_for_it() {
    let mut world = awaiting_node(&grown("data=3Gi"), LATER).await;
    assert_eq!(world.step().await, None);
    assert_eq!(world.requests(Call::DeletePod), 0);
    assert_eq!(world.sizes(), "1Gi 3Gi 3Gi", "the next pod's turn comes");
    assert_eq!(world.reason(), "False AwaitsPodRestart");

    let mut world = awaiting_node(&with_pod(grown("data=3Gi")), LATER).await;
    let restarted = Wait::RestartedForClaim("web-2".into());
    assert_eq!(world.step().await, Some(restarted.into()));
    assert_eq!(world.pod_names(), ["web-0", "web-1"]);
    assert_eq!(world.sizes(), "1Gi 1Gi 3Gi", "the turn isn't over");
    assert_eq!(world.reason(), "False PodRestart");
    assert_eq!(
        world.step().await,
        Some(Waiting::PodCreated("web-2".into()))
    );
    world.run("web-2");
    world.expand("data-web-2");
    assert_eq!(world.step().await, None);
    assert_eq!(world.sizes(), "1Gi 3Gi 3Gi");
    assert_eq!(world.requests(Call::DeletePod), 1);
}

#[tokio::test]
async fn claims_of_a_pod_that_is_down_wait_for_no_restart() {
    // The pod that is down holds the restart back, perhaps because its volume is full.
    let mut world = awaiting_node(&with_pod(grown("data=3Gi")), LATER).await;
    world.set_ready("web-0", false);
    assert_eq!(world.step().await, not_ready("web-0"));
    assert_eq!(world.requests(Call::DeletePod), 0);
    assert_eq!(world.sizes(), "3Gi 1Gi 3Gi");
    assert_eq!(world.reason(), "False PodRestart");
}

#[tokio::test]
async fn pod_created_after_the_expansion_does_not_restart() {
    let set = with_pod(grown("data=3Gi"));
    let mut world = awaiting_node(&set, "2026-03-01T09:00:00Z").await;
    assert_eq!(world.step().await, None);
    assert_eq!(world.requests(Call::DeletePod), 0);
    assert_eq!(world.reason(), "False PodRestart");
}

#[tokio::test]
async fn pod_restarts_again_only_after_a_delay() {
    let set = with_pod(grown("data=3Gi"));
    let mut world = awaiting_node(&set, "2026-03-01T13:00:00Z").await;
    for deletions in [1, 2] {
        world.step().await;
        assert_eq!(world.requests(Call::DeletePod), deletions);
        for _ in 0..3 {
            world.step().await;
            world.run_all();
        }
        assert_eq!(world.requests(Call::DeletePod), deletions);
        world.now += jiff::SignedDuration::from_secs(61);
    }
}

#[tokio::test]
async fn restart_keeps_to_pause_budget_strategy_and_gate() {
    let paused = |set: Builder<StatefulSet>| set.annotation(Carrier::Paused.annotation(), "true");
    let gated =
        |set: Builder<StatefulSet>| set.annotation(Carrier::RemovalGate.annotation(), "app=web");
    let plain = |set: Builder<StatefulSet>| set;
    for (change, unready, restarts) in [
        (plain as SetChange, None, true),
        (paused, None, false),
        (gated, None, false),
        (|set| set.on_delete(), None, false),
        (plain, Some("web-1"), false),
        (plain, Some("web-2"), true),
    ] {
        let set = change(with_pod(grown("data=3Gi")));
        let mut world = awaiting_node(&set, LATER).await;
        if let Some(unready) = unready {
            world.set_ready(unready, false);
        }
        world.step().await;
        let deletions = world.requests(Call::DeletePod);
        assert_eq!(
            deletions,
            usize::from(restarts),
            "{:?} {unready:?}",
            set.json()
        );
    }
}

#[tokio::test]
async fn claims_keep_their_owners_when_their_pod_restarts() {
    let set = with_pod(grown("data=3Gi")).retention("Delete", "Retain");
    let mut world = awaiting_node(&set, LATER).await;
    world.step().await;
    assert!(world.owners_of_claim("data-web-2").is_empty());
    assert_eq!(world.requests(Call::DeletePod), 1);
}
