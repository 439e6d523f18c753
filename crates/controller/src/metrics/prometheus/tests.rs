//! The metric families in a scrape.

use serde_json::Value;
use statefulset_client::clock::FakeClock;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::metrics::text;
use statefulset_controller_util::consistency::NoopConsistencyStore;
use statefulset_controller_util::controller_ref_manager::MockSetReader;
use statefulset_controller_util::pod_control::MockPodControl;
use statefulset_controller_util::stateful_set::StatefulSet;
use statefulset_controller_util::testing::builders::Builder;
use statefulset_controller_util::testing::upstream;
use statefulset_set_control::testing::World;

use super::*;
use crate::metrics::ControllerMetrics;
use crate::{SetSyncer, SyncerParts};

const ORDERED: PodManagementPolicy = PodManagementPolicy::OrderedReady;
const PARALLEL: PodManagementPolicy = PodManagementPolicy::Parallel;

fn registry(stale_sync_skips: bool) -> (Registry, ControllerMetrics) {
    let registry = Registry::new();
    let options = Options::default().stale_sync_skips(stale_sync_skips);
    let metrics = ControllerMetrics::register(&registry, &options).unwrap();
    (registry, metrics)
}

/// Samples of the sets' families, without the common prefix of their names.
fn samples(registry: &Registry) -> Vec<String> {
    let prefix = "statefulset_controller_";
    text::encode(&registry.gather())
        .lines()
        .filter_map(|line| line.strip_prefix(prefix))
        .map(str::to_owned)
        .collect()
}

fn counted(max: usize, current: Option<usize>) -> Unavailability {
    Unavailability { max, current }
}

#[test]
fn deleted_sets_series_are_removed() {
    let (registry, metrics) = registry(false);
    let [web, other] = ["a", "ab"].map(|namespace| ObjectKey::new(namespace, "bweb"));
    metrics.sets.counted(&web, ORDERED, counted(2, Some(1)));
    metrics.sets.counted(&other, PARALLEL, counted(3, None));
    let ordered = "{pod_management_policy=\"OrderedReady\",statefulset_name=\"bweb\",\
                   statefulset_namespace=\"a\"}";
    let parallel = "{pod_management_policy=\"Parallel\",statefulset_name=\"bweb\",\
                    statefulset_namespace=\"ab\"}";
    assert_eq!(
        samples(&registry),
        [
            format!("statefulset_max_unavailable{ordered} 2"),
            format!("statefulset_max_unavailable{parallel} 3"),
            format!("statefulset_unavailable_replicas{ordered} 1"),
        ]
    );
    // A sync that stops early keeps the last count.
    metrics.sets.counted(&web, ORDERED, counted(4, None));
    metrics.sets.gone(&other);
    assert_eq!(
        samples(&registry),
        [
            format!("statefulset_max_unavailable{ordered} 4"),
            format!("statefulset_unavailable_replicas{ordered} 1"),
        ]
    );
    // A recreated set, before the deletion of the first was seen.
    metrics.sets.counted(&web, PARALLEL, counted(1, None));
    assert_eq!(
        samples(&registry),
        [
            "statefulset_max_unavailable{pod_management_policy=\"Parallel\",\
          statefulset_name=\"bweb\",statefulset_namespace=\"a\"} 1"
        ]
    );
    metrics.sets.gone(&web);
    assert!(samples(&registry).is_empty());
}

#[test]
fn skipped_syncs_are_exported_only_since_1_37() {
    for shown in [false, true] {
        let (registry, metrics) = registry(shown);
        for resource in [
            TrackedResource::Pods,
            TrackedResource::StatefulSets,
            TrackedResource::Pods,
        ] {
            metrics.sets.stale_sync_skipped(resource);
        }
        let expected = [
            "stale_sync_skips_total{group=\"\",resource=\"pods\"} 2",
            "stale_sync_skips_total{group=\"apps\",resource=\"statefulsets\"} 1",
        ];
        let expected = if shown { &expected[..] } else { &[] };
        assert_eq!(samples(&registry), expected);
    }
}

/// Returns a set's gauges after a whole sync with a changed template, with the first pods
/// unavailable; `TestStatefulSetMetrics` reads the same gauges. A sync counts unavailable pods
/// neither with `OnDelete` nor with an unready pod in an ordered set; upstream's test, which calls
/// the step directly, sees the gauge there too.
async fn gauges(set: Builder<StatefulSet>, unavailable: i32) -> [Option<String>; 2] {
    let gates = FeatureGates::default().max_unavailable_stateful_set(true);
    let mut world = World::new(set.build(), gates);
    let replicas = usize::try_from(world.set.spec.replicas).unwrap();
    for _ in 0..=replicas {
        world.step().await;
        for pod in world.pods() {
            world.run(&pod);
        }
    }
    assert_eq!(world.pods().len(), replicas);
    let is_parallel = world.set.spec.allows_burst();
    for ordinal in 0..unavailable {
        if is_parallel {
            world.add_terminating_pod(ordinal);
        } else {
            world.set_ready(ordinal, false);
        }
    }
    world.apply(&set.image("foo"));

    let (registry, metrics) = registry(false);
    let clock = FakeClock::new(world.now);
    let syncer = SetSyncer::new(SyncerParts {
        caches: world.caches(),
        reader: Arc::new(MockSetReader::new()),
        pod_control: Arc::new(MockPodControl::new()),
        set_control: Arc::clone(&world.control) as _,
        consistency: Arc::new(NoopConsistencyStore),
        clock: Arc::new(clock),
        metrics: metrics.sets,
    });
    syncer.sync(&world.set.key()).await.unwrap();
    let policy = if is_parallel {
        "Parallel"
    } else {
        "OrderedReady"
    };
    let labels = format!(
        "{{pod_management_policy=\"{policy}\",statefulset_name=\"foo\",\
         statefulset_namespace=\"default\"}} "
    );
    ["max_unavailable", "unavailable_replicas"].map(|gauge| {
        let samples = samples(&registry);
        let prefix = format!("statefulset_{gauge}{labels}");
        samples
            .iter()
            .find_map(|line| line.strip_prefix(&prefix).map(str::to_owned))
    })
}

#[tokio::test]
async fn syncs_set_the_gauges_of_upstreams_test() {
    let set = upstream::set;
    let rolling = |replicas, max: Value| set(replicas).partition(0).max_unavailable(max);
    for (set, unavailable, max, current) in [
        (rolling(5, 2.into()), 1, "2", None),
        (rolling(10, "20%".into()).parallel(), 3, "2", Some("3")),
        (rolling(6, 3.into()), 3, "3", None),
        (rolling(4, 1.into()).parallel(), 0, "1", Some("0")),
        (rolling(8, "25%".into()), 1, "2", None),
        (rolling(5, "80%".into()).parallel(), 4, "4", Some("4")),
        (rolling(2, 1.into()), 1, "1", None),
        (rolling(1, 1.into()).parallel(), 1, "1", Some("1")),
        (set(3).on_delete(), 2, "1", None),
        (set(4).on_delete().parallel(), 1, "1", None),
        (rolling(5, Value::Null), 2, "1", None),
        (rolling(6, Value::Null).parallel(), 0, "1", Some("0")),
    ] {
        let text = set.text();
        let expected = [Some(max), current].map(|value| value.map(str::to_owned));
        assert_eq!(
            gauges(set, unavailable).await,
            expected,
            "{unavailable} of {text}"
        );
    }
}
