//! Tests of the families as a scrape shows them.

use std::time::Duration;

use http::Method;
use prometheus::{IntGaugeVec, Opts, Registry};

use super::*;
use crate::cache::informer::InformerMetricsProvider as _;
use crate::leaderelection::LeaderElectionMetrics as _;
use crate::resource::PODS;
use crate::workqueue::Unfinished;

fn scrape(registry: &Registry) -> String {
    text::encode(&registry.gather())
}

/// Returns the lines of a scrape with this prefix.
fn lines<'a>(scrape: &'a str, prefix: &str) -> Vec<&'a str> {
    scrape
        .lines()
        .filter(|line| line.starts_with(prefix))
        .collect()
}

#[test]
fn numbers_are_formatted_like_go() {
    for (value, expected) in [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.0001, "0.0001"),
        (0.000_012_5, "1.25e-05"),
        (1e-8, "1e-08"),
        (1e-100, "1e-100"),
        (262_144.0, "262144"),
        (999_999.0, "999999"),
        (1_048_576.0, "1.048576e+06"),
        (124_416_000.0, "1.24416e+08"),
        (2.5e21, "2.5e+21"),
        (22.911_986_975_999_998, "22.911986975999998"),
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(text::go_float(value), expected);
    }
}

#[test]
fn help_and_labels_are_escaped() {
    let registry = Registry::new();
    let options = Opts::new("odd", "a \\ and \"a\"\nline");
    let family = register(&registry, IntGaugeVec::new(options, &["b", "a"])).unwrap();
    family.with_label_values(&["x\ny", "\"\\"]).set(3);
    let expected = concat!(
        "# HELP odd a \\\\ and \"a\"\\nline\n",
        "# TYPE odd gauge\n",
        "odd{a=\"\\\"\\\\\",b=\"x\\ny\"} 3\n",
    );
    assert_eq!(scrape(&registry), expected);
}

#[test]
fn requests_are_counted_by_verb_code_and_host() {
    let registry = Registry::new();
    let client = RestClientFamilies::register(&registry)
        .unwrap()
        .client("[::1]:6443");
    client.rate_limited(&Method::POST, Duration::ZERO);
    client.sent(&Method::POST, 64);
    client.requested(&Method::POST, Some(503));
    client.sent(&Method::POST, 64);
    client.requested(&Method::POST, None);
    client.retried(&Method::POST, None);
    client.finished(&Method::POST, Duration::from_millis(30), None);
    client.finished(&Method::GET, Duration::from_secs(3600), Some(65));
    let scrape = scrape(&registry);
    let samples: Vec<_> = lines(&scrape, "rest_client_r")
        .into_iter()
        .filter(|line| !line.contains("_bucket{"))
        .map(|line| {
            let line = line.strip_prefix("rest_client_").unwrap();
            line.replace("host=\"[::1]:6443\",", "")
        })
        .collect();
    assert_eq!(
        samples,
        [
            "rate_limiter_duration_seconds_sum{verb=\"POST\"} 0",
            "rate_limiter_duration_seconds_count{verb=\"POST\"} 1",
            "request_duration_seconds_sum{verb=\"GET\"} 3600",
            "request_duration_seconds_count{verb=\"GET\"} 1",
            "request_duration_seconds_sum{verb=\"POST\"} 0.03",
            "request_duration_seconds_count{verb=\"POST\"} 1",
            "request_retries_total{code=\"<error>\",verb=\"POST\"} 1",
            "request_size_bytes_sum{verb=\"POST\"} 128",
            "request_size_bytes_count{verb=\"POST\"} 2",
            "requests_total{code=\"503\",method=\"POST\"} 1",
            "requests_total{code=\"<error>\",method=\"POST\"} 1",
            "response_size_bytes_sum{verb=\"GET\"} 65",
            "response_size_bytes_count{verb=\"GET\"} 1",
        ]
    );
    let sizes = lines(&scrape, "rest_client_request_size_bytes_bucket");
    assert!(sizes[0].ends_with("le=\"64\"} 2"), "{sizes:?}");
    assert!(sizes[8].ends_with("le=\"1.048576e+06\"} 2"), "{sizes:?}");
    assert!(sizes[11].ends_with("le=\"+Inf\"} 2"), "{sizes:?}");
}

#[test]
fn metrics_of_go_only_features_are_constant() {
    let registry = Registry::new();
    let families = RestClientFamilies::register(&registry).unwrap();
    drop((families.client("a"), families.client("a")));
    let scrape = scrape(&registry);
    for line in [
        "rest_client_exec_plugin_ttl_seconds +Inf",
        "rest_client_exec_plugin_certificate_rotation_age_count 0",
        "rest_client_transport_cache_entries 0",
        "rest_client_transport_cert_rotation_gc_calls_total 0",
        "rest_client_transport_create_calls_total{result=\"uncacheable\"} 2",
    ] {
        assert!(scrape.lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn queue_series_exist_before_use() {
    let registry = Registry::new();
    let queue = WorkqueueFamilies::register(&registry).unwrap().queue("q");
    let singles = |scrape: &str| -> Vec<String> {
        let lines = scrape.lines();
        let singles = lines.filter(|line| !line.starts_with('#') && !line.contains("_bucket"));
        singles
            .map(|line| line.replace("{name=\"q\"}", ""))
            .collect()
    };
    let expected = |values: [&str; 9]| {
        let names = [
            "adds_total",
            "depth",
            "longest_running_processor_seconds",
            "queue_duration_seconds_sum",
            "queue_duration_seconds_count",
            "retries_total",
            "unfinished_work_seconds",
            "work_duration_seconds_sum",
            "work_duration_seconds_count",
        ];
        let both = names.iter().zip(values);
        both.map(|(name, value)| format!("workqueue_{name} {value}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(singles(&scrape(&registry)), expected(["0"; 9]));

    queue.added();
    queue.added();
    queue.got(Duration::from_nanos(10));
    queue.done(Duration::from_millis(50));
    queue.retried();
    queue.unfinished(Unfinished {
        total: Duration::from_millis(1500),
        longest: Duration::from_secs(1),
    });
    let scrape = scrape(&registry);
    let values = ["2", "1", "1", "1e-08", "1", "1", "1.5", "0.05", "1"];
    assert_eq!(singles(&scrape), expected(values));
    assert_eq!(
        lines(&scrape, "workqueue_queue_duration_seconds_bucket")[2..4],
        [
            "workqueue_queue_duration_seconds_bucket{name=\"q\",le=\"1e-06\"} 1",
            "workqueue_queue_duration_seconds_bucket{name=\"q\",le=\"9.999999999999999e-06\"} 1",
        ]
    );
}

#[test]
fn lease_gauge_shows_leader() {
    let registry = Registry::new();
    let election = LeaderElectionFamilies::register(&registry).unwrap();
    assert_eq!(scrape(&registry), "");
    election.master_status("lease", false);
    assert!(scrape(&registry).ends_with("\nleader_election_master_status{name=\"lease\"} 0\n"));
    election.master_status("lease", true);
    election.slowpath_exercised("lease");
    let scrape = scrape(&registry);
    assert_eq!(
        lines(&scrape, "leader_election_master_status{"),
        ["leader_election_master_status{name=\"lease\"} 1"]
    );
    assert_eq!(
        lines(&scrape, "leader_election_slowpath_total{"),
        ["leader_election_slowpath_total{name=\"lease\"} 1"]
    );
}

#[test]
fn cache_version_shows_trailing_digits() {
    let registry = Registry::new();
    let families = InformerFamilies::register(&registry, "manager").unwrap();
    let informer = families.informer(&PODS);
    let version = || {
        let scrape = scrape(&registry);
        let lines = lines(&scrape, "informer_store_resource_version{");
        assert_eq!(lines.len(), 1);
        let labels = "{group=\"\",name=\"manager\",resource=\"pods\",version=\"v1\"} ";
        lines[0].split_once(labels).unwrap().1.to_owned()
    };
    assert_eq!(version(), "0");
    for (stored, shown) in [
        ("7", "7"),
        ("", "7"),
        ("not a number", "7"),
        ("1234567890123456789", "5.67890123456789e+14"),
    ] {
        informer.store_version(stored);
        assert_eq!(version(), shown);
    }
    informer.processed(Duration::from_millis(1));
    let scrape = scrape(&registry);
    assert_eq!(
        lines(&scrape, "informer_processing_latency_seconds_count")[0]
            .split(' ')
            .next_back(),
        Some("1")
    );
    assert_eq!(lines(&scrape, "informer_queued_items{").len(), 1);
}

#[test]
fn duplicate_family_error_names_family() {
    let registry = Registry::new();
    WorkqueueFamilies::register(&registry).unwrap();
    let error = WorkqueueFamilies::register(&registry).err().unwrap();
    assert_eq!(
        error.to_string(),
        "Error: cannot register workqueue_depth: the registry has a family of this name already"
    );
    assert!(RestClientFamilies::register(&registry).is_ok());

    // Another crate's family, with other labels, and with a constant label.
    for constant in [false, true] {
        let registry = Registry::new();
        let mut others = Opts::new("informer_queued_items", "Another crate's.");
        if constant {
            others = others.const_label("program", "other");
        }
        register(&registry, IntGaugeVec::new(others, &["cache"])).unwrap();
        let error = InformerFamilies::register(&registry, "manager");
        assert_eq!(
            error.err().unwrap().to_string(),
            "Error: cannot register informer_queued_items: the registry has a family of this name \
             already"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn seconds_since_in_step_grow() {
    let registry = Registry::new();
    let families = InformerFamilies::register(&registry, "program").unwrap();
    let informer = families.informer(&PODS);
    let labels = r#"{group="",name="program",resource="pods",version="v1"}"#;
    let shown = |seconds: u32, objects: u32| {
        let scrape = scrape(&registry);
        let expected = [
            format!("informer_objects_set_aside{labels} {objects}"),
            format!("informer_seconds_since_in_step{labels} {seconds}"),
        ];
        assert_eq!(lines(&scrape, "informer_objects_set_aside")[0], expected[0]);
        assert_eq!(
            lines(&scrape, "informer_seconds_since_in_step")[0],
            expected[1]
        );
    };
    shown(0, 0);
    tokio::time::advance(Duration::from_secs(70)).await;
    informer.set_aside(3);
    shown(70, 3);
    informer.in_step();
    shown(0, 3);
}
