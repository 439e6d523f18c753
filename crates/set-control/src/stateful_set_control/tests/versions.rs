//! Behaviour by emulated version: completion, `maxUnavailable`, and the preview of 1.38.

use statefulset_client::feature_gates::KubeVersion;
use statefulset_controller_util::stateful_set::UpdateStrategyType;

use super::*;

const NEW: &str = "registry.example/app:2";

fn at(set: &Builder<StatefulSet>, minor: u32) -> World {
    with_gates(set, FeatureGates::at(KubeVersion::v1(minor)))
}

#[tokio::test]
async fn on_delete_set_completes_from_1_37_on() {
    let surplus: fn(&World, &Builder<StatefulSet>, &str) = |world, set, revision| {
        world.put_pod(
            &builders::pod(&set.build(), 3)
                .terminating()
                .revision(revision),
        );
    };
    let unready: fn(&World, &Builder<StatefulSet>, &str) = |world, set, revision| {
        world.put_pod(&builders::pod(&set.build(), 2).unready().revision(revision));
    };
    let nothing: fn(&World, &Builder<StatefulSet>, &str) = |_, _, _| ();
    for (minor, change, completes) in [
        (36, nothing, false),
        (37, nothing, true),
        (37, surplus, false),
        (37, unready, false),
    ] {
        let set = web().on_delete();
        let mut world = at(&set, minor);
        world.settle().await;
        let set = set.image(NEW).generation(2);
        world.apply(&set);
        let (old, new) = (revision_name(&web()), revision_name(&set));
        for ordinal in 0..3 {
            world.put_pod(&builders::pod(&set.build(), ordinal).revision(&new));
        }
        change(&world, &set, &new);
        world.step().await;
        let status = &world.set.status;
        let expected = if completes { &new } else { &old };
        assert_eq!(*status.current_revision, **expected, "{minor} {completes}");
        assert_eq!(status.current_replicas, if completes { 3 } else { 0 });
    }
}

#[tokio::test]
async fn max_unavailable_is_on_from_1_37_on() {
    for (minor, deleted) in [(35, 1), (36, 1), (37, 2)] {
        let set = web().max_unavailable(2);
        let mut world = at(&set, minor);
        world.settle().await;
        world.apply(&set.image(NEW).generation(2));
        let outcome = world.sync().await;
        assert_eq!(world.pod_names().len(), 3 - deleted, "{minor}");
        let counted = outcome.unavailable_replicas;
        assert_eq!(counted, (minor == 37).then_some(0), "{minor}");
    }
}

#[tokio::test]
async fn new_member_of_1_37_rolls_out_from_1_37_on() {
    let responders = json!([{"name": "a.example/b", "priority": 1}]);
    for (minor, revisions) in [(33, 1), (36, 1), (37, 2)] {
        let mut world = at(&web(), minor);
        world.settle().await;
        let path = "spec.template.spec.evictionResponders";
        world.apply(&web().with(path, responders.clone()).generation(2));
        world.settle().await;
        assert_eq!(world.revisions().len(), revisions, "{minor}");
        // The change waits for the version that knows the field, as with upstream.
        world.restart(FeatureGates::at(KubeVersion::v1(37)));
        world.settle().await;
        assert_eq!(world.revisions().len(), 2, "{minor}");
        world.restart(FeatureGates::at(KubeVersion::v1(minor)));
        world.settle().await;
        assert_eq!(world.revisions().len(), 2, "{minor}");
    }
}

/// Upstream sends both deletions, too: its second pass reads the cached pods.
#[tokio::test]
async fn failed_outdated_pod_is_deleted_twice_by_parallel_sets() {
    let set = web().parallel().image(NEW).generation(2);
    let mut world = at(&set, 37);
    for ordinal in 0..3 {
        world.put_pod(&pod(&web(), ordinal));
    }
    world.put_pod(&pod(&web(), 0).phase("Failed").unready());
    let outcome = world.sync().await;
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    // Its place counts as unavailable, so no available pod goes.
    assert_eq!(world.pod_names(), ["web-1", "web-2"]);
    assert_eq!(world.requests(Call::DeletePod), 2);
}

/// Without `rollingUpdate`, a hole below the stored count gets the current revision.
#[tokio::test]
async fn parallel_sync_creates_then_deletes_an_outdated_pod() {
    let set = web()
        .parallel()
        .with("spec.updateStrategy", json!({"type": "RollingUpdate"}));
    let mut world = at(&set, 37);
    world.settle().await;
    world.remove_pod("web-0");
    world.apply(&set.image(NEW).generation(2));
    let created = world.requests(Call::CreatePod);
    world.step().await;
    assert_eq!(world.requests(Call::CreatePod), created + 1);
    assert_eq!(world.pod_names(), ["web-1", "web-2"]);
}

#[tokio::test]
async fn full_quota_blocks_scale_down_only_without_the_preview() {
    let full: fn() -> ApiError = || ApiError::api(403, "Forbidden", "exceeded quota");
    let preview = "PreviewParallelScaleDownFirst=true";
    for (settings, parallel, left) in [
        ("", true, vec!["web-0", "web-3"]),
        (preview, true, vec!["web-0"]),
        ("", false, vec!["web-0", "web-3"]),
        (preview, false, vec!["web-0", "web-3"]),
    ] {
        let set = if parallel { web().parallel() } else { web() };
        let set = set.replicas(2);
        let gates = FeatureGates::parse(settings, KubeVersion::v1(37)).unwrap();
        let mut world = with_gates(&set, gates);
        for ordinal in [0, 3] {
            world.put_pod(&pod(&set, ordinal));
        }
        world.fail_with(Call::CreatePod, 0, full);
        let error = world.sync_error().await;
        assert_eq!(error, "exceeded quota");
        assert_eq!(world.pod_names(), left, "{settings} {parallel}");
    }
}

#[tokio::test]
async fn failed_scale_down_of_the_preview_creates_nothing() {
    let set = web().parallel().replicas(2);
    let gates = FeatureGates::parse("PreviewParallelScaleDownFirst=1", KubeVersion::v1(37));
    let mut world = with_gates(&set, gates.unwrap());
    world.put_pod(&pod(&set, 3));
    world.fail(Call::DeletePod, 0);
    assert_eq!(world.sync_error().await, INJECTED);
    assert_eq!(world.pod_names(), ["web-3"]);
}

/// The set as an API server of this version returns it: 1.37 adds a default to rolling updates.
fn served(set: &Builder<StatefulSet>, minor: u32) -> Builder<StatefulSet> {
    let strategy = set.build().spec.update_strategy.strategy_type;
    if minor >= 37 && strategy == UpdateStrategyType::RollingUpdate {
        return set.clone().max_unavailable(1);
    }
    set.clone()
}

/// Gates of a controller that emulates this version.
fn gates_of(minor: u32) -> FeatureGates {
    let settings = match minor {
        37 => "StatefulSetRecreateStrategy=true",
        _ => "",
    };
    FeatureGates::parse(settings, KubeVersion::v1(minor)).unwrap()
}

/// Rolls a set out while server and controller are of 1.37 from one sync to another, and of 1.36
/// before and after.
async fn roll_across(set: &Builder<StatefulSet>, newer: std::ops::Range<usize>) {
    let mut world = at(set, 36);
    world.settle().await;
    let created = world.requests(Call::CreatePod);
    let deleted = world.requests(Call::DeletePod);
    let set = set.clone().image(NEW).generation(2);
    let update = revision_name(&set);
    let is_on_delete =
        set.build().spec.update_strategy.strategy_type == UpdateStrategyType::OnDelete;
    for step in 0..20 {
        let minor = if newer.contains(&step) { 37 } else { 36 };
        world.restart(gates_of(minor));
        world.apply(&served(&set, minor));
        world.step().await;
        let mut pods = world.pod_names().into_iter();
        if is_on_delete && let Some(old) = pods.find(|pod| world.pod_revision(pod) != update) {
            // The user deletes it.
            world.remove_pod(&old);
        }
        world.run_all();
    }
    let pods = world.pod_names();
    assert_eq!(pods, ["web-0", "web-1", "web-2"]);
    assert!(pods.iter().all(|pod| world.pod_revision(pod) == update));
    let creations = world.requests(Call::CreatePod) - created;
    let deletions = world.requests(Call::DeletePod) - deleted;
    assert_eq!(
        (creations, deletions),
        (3, if is_on_delete { 0 } else { 3 })
    );
    assert_eq!(world.revisions().len(), 2);
    assert_eq!(
        world.set.status.conditions, None,
        "1.36 leaves no condition behind"
    );
}

#[tokio::test]
async fn version_changes_midway_replace_no_pod_twice() {
    for set in [web(), web().on_delete(), web().recreate()] {
        for set in [set.clone(), set.parallel()] {
            for start in 0..8 {
                for length in [0, 1, 3, 8] {
                    roll_across(&set, start..start + length).await;
                }
            }
        }
    }
}
