//! Behaviour by emulated version: completion, `maxUnavailable`, and the preview of 1.38.

use statefulset_client::feature_gates::KubeVersion;

use super::*;

const NEW: &str = "registry.example/app:2";

fn at(set: &Builder<StatefulSet>, minor: u32) -> Cluster {
    with_gates(set, FeatureGates::at(KubeVersion::v1(minor)))
}

#[tokio::test]
async fn on_delete_set_completes_from_1_37_on() {
    let surplus: fn(&Cluster, &Builder<StatefulSet>, &str) = |cluster, set, revision| {
        cluster.put(
            &builders::pod(&set.build(), 3)
                .terminating()
                .revision(revision),
        );
    };
    let unready: fn(&Cluster, &Builder<StatefulSet>, &str) = |cluster, set, revision| {
        cluster.put(&builders::pod(&set.build(), 2).unready().revision(revision));
    };
    let nothing: fn(&Cluster, &Builder<StatefulSet>, &str) = |_, _, _| ();
    for (minor, change, completes) in [
        (36, nothing, false),
        (37, nothing, true),
        (37, surplus, false),
        (37, unready, false),
    ] {
        let set = web().on_delete();
        let cluster = at(&set, minor);
        cluster.settle().await;
        let set = set.image(NEW).generation(2);
        cluster.change(&set);
        let (old, new) = (revision_name(&web()), revision_name(&set));
        for ordinal in 0..3 {
            cluster.put(&builders::pod(&set.build(), ordinal).revision(&new));
        }
        change(&cluster, &set, &new);
        cluster.step().await;
        let status = &cluster.set().status;
        let expected = if completes { &new } else { &old };
        assert_eq!(*status.current_revision, **expected, "{minor} {completes}");
        assert_eq!(status.current_replicas, if completes { 3 } else { 0 });
    }
}

#[tokio::test]
async fn max_unavailable_is_on_from_1_37_on() {
    for (minor, deleted) in [(35, 1), (36, 1), (37, 2)] {
        let set = web().max_unavailable(2);
        let cluster = at(&set, minor);
        cluster.settle().await;
        cluster.change(&set.image(NEW).generation(2));
        let outcome = cluster.sync().await;
        assert_eq!(cluster.pods().len(), 3 - deleted, "{minor}");
        let counted = outcome.unavailable_replicas;
        assert_eq!(counted, (minor == 37).then_some(0), "{minor}");
    }
}

/// Upstream sends both deletions, too: its second pass reads the cached pods.
#[tokio::test]
async fn failed_outdated_pod_is_deleted_twice_by_parallel_sets() {
    let set = web().parallel().image(NEW).generation(2);
    let cluster = at(&set, 37);
    for ordinal in 0..3 {
        cluster.put(&pod(&web(), ordinal));
    }
    cluster.put(&pod(&web(), 0).phase("Failed").unready());
    let outcome = cluster.sync().await;
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    // Its place counts as unavailable, so no available pod goes.
    assert_eq!(cluster.pods(), ["web-1", "web-2"]);
    assert_eq!(cluster.objects.delete_pod_tracker.requests(), 2);
}

/// Without `rollingUpdate`, a hole below the stored count gets the current revision.
#[tokio::test]
async fn hole_of_a_bare_parallel_set_is_filled_and_emptied_in_one_sync() {
    let set = web()
        .parallel()
        .with("spec.updateStrategy", json!({"type": "RollingUpdate"}));
    let cluster = at(&set, 37);
    cluster.settle().await;
    cluster.objects.pods.delete("ns", "web-0").unwrap();
    cluster.change(&set.image(NEW).generation(2));
    let created = cluster.objects.create_pod_tracker.requests();
    cluster.step().await;
    assert_eq!(cluster.objects.create_pod_tracker.requests(), created + 1);
    assert_eq!(cluster.pods(), ["web-1", "web-2"]);
}

#[tokio::test]
async fn full_quota_blocks_a_parallel_scale_down_only_without_the_preview() {
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
        let cluster = with_gates(&set, gates);
        for ordinal in [0, 3] {
            cluster.put(&pod(&set, ordinal));
        }
        cluster.objects.create_pod_tracker.fail_after(0, full);
        let error = cluster.sync().await.error.unwrap().to_string();
        assert_eq!(error, "exceeded quota");
        assert_eq!(cluster.pods(), left, "{settings} {parallel}");
    }
}

#[tokio::test]
async fn failed_scale_down_of_the_preview_creates_nothing() {
    let set = web().parallel().replicas(2);
    let gates = FeatureGates::parse("PreviewParallelScaleDownFirst=1", KubeVersion::v1(37));
    let cluster = with_gates(&set, gates.unwrap());
    cluster.put(&pod(&set, 3));
    cluster.objects.delete_pod_tracker.fail_after(0, boom);
    assert_eq!(cluster.sync().await.error.unwrap().to_string(), "boom");
    assert_eq!(cluster.pods(), ["web-3"]);
}
