//! Metrics of a running controller.

use http::Method;
use prometheus::Registry;
use serde_json::json;
use statefulset_client::feature_gates::FeatureGates;
use statefulset_client::metrics::text;
use statefulset_controller::metrics::ControllerMetrics;
use statefulset_controller::metrics::prometheus::Options;

use crate::{SETS, World};

/// Returns the samples whose names have this prefix.
fn samples(registry: &Registry, prefix: &str) -> Vec<String> {
    let text = text::encode(&registry.gather());
    let lines = text.lines().filter(|line| line.starts_with(prefix));
    lines.map(str::to_owned).collect()
}

/// Returns the value of the only sample whose name has this prefix.
fn value(registry: &Registry, prefix: &str) -> String {
    let samples = samples(registry, prefix);
    assert_eq!(samples.len(), 1, "{samples:?}");
    samples[0].rsplit_once(' ').unwrap().1.to_owned()
}

#[tokio::test(start_paused = true)]
async fn controller_exports_set_queue_and_cache_metrics() {
    let registry = Registry::new();
    let metrics = ControllerMetrics::register(&registry, &Options::default()).unwrap();
    let gates = FeatureGates::default().max_unavailable_stateful_set(true);
    let mut world = World::new().await;
    world.create_set("db", 1).await;
    world.create_set("web", 2).await;
    let builder = world.builder().feature_gates(gates);
    world.run_built_by(builder.metrics(metrics));
    world.rest().await;

    let max_unavailable = "statefulset_controller_statefulset_max_unavailable{";
    let labels = |name: &str| {
        format!(
            "{max_unavailable}pod_management_policy=\"Parallel\",statefulset_name=\"{name}\",\
             statefulset_namespace=\"default\"}} 1"
        )
    };
    assert_eq!(
        samples(&registry, max_unavailable),
        [labels("db"), labels("web")]
    );
    let adds = value(&registry, "workqueue_adds_total");
    assert!(adds.parse::<u32>().unwrap() >= 2, "{adds}");
    let worked = value(&registry, "workqueue_work_duration_seconds_count");
    assert_eq!(worked, adds);
    for gauge in [
        "depth",
        "unfinished_work_seconds",
        "longest_running_processor_seconds",
    ] {
        assert_eq!(value(&registry, &format!("workqueue_{gauge}")), "0");
    }
    for prefix in [
        "informer_store_resource_version{",
        "informer_processing_latency_seconds_count{",
    ] {
        let counted = samples(&registry, prefix);
        assert_eq!(counted.len(), 4, "{counted:?}");
        assert!(
            counted.iter().all(|line| !line.ends_with(" 0")),
            "{counted:?}"
        );
    }

    // A set's series are removed with the set.
    let path = format!("{SETS}/web");
    world.ask(Method::DELETE, &path, &json!({})).await;
    world.rest().await;
    assert_eq!(samples(&registry, max_unavailable), [labels("db")]);
}
