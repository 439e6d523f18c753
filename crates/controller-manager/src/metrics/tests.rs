//! Tests of the metrics page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use kube_apimachinery::object_key::ObjectKey;
use prometheus::proto::{LabelPair, MetricType};
use statefulset_client::feature_gates::KubeVersion;
use statefulset_client::resource::PODS;
use statefulset_controller::metrics::{Unavailability, Verdict};
use statefulset_controller_util::consistency::TrackedResource;
use statefulset_controller_util::stateful_set::PodManagementPolicy;

use super::*;

const RELEASE: Release = Release {
    major: 1,
    minor: 36,
    patch: 2,
};
const FEATURES: [Feature; 2] = [("A", "ALPHA", false), ("B", "BETA", true)];

/// Metrics with a count in every family.
fn counted(release: Release) -> Metrics {
    let metrics = Metrics::new(release, &FEATURES, View::default()).unwrap();
    let client = metrics.client(&Uri::from_static("https://me@127.0.0.1:6443/a"));
    client.rate_limited(&Method::GET, Duration::ZERO);
    client.sent(&Method::GET, 0);
    client.requested(&Method::GET, Some(200));
    client.retried(&Method::GET, Some(200));
    client.finished(&Method::GET, Duration::from_millis(4), Some(2));
    metrics.leader_election.master_status("lease", true);
    metrics.leader_election.slowpath_exercised("lease");
    let controller = &metrics.controller;
    let informer = controller.informers.informer(&PODS);
    informer.processed(Duration::ZERO);
    let unavailability = Unavailability {
        max: 1,
        current: Some(0),
    };
    let set = ObjectKey::new("ns", "web");
    let policy = PodManagementPolicy::OrderedReady;
    controller.sets.counted(&set, policy, unavailability);
    controller.sets.stale_sync_skipped(TrackedResource::Pods);
    metrics.shadow().unwrap().judged(Verdict::Equal);
    metrics.of_controller(true).unwrap().fence.fell("policy");
    metrics
}

#[test]
fn documentation_lists_every_metric() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics-list.md");
    let page = fs::read_to_string(&path).unwrap();
    let kinds = ["| counter |", "| gauge |", "| histogram |"];
    let listed: BTreeSet<&str> = page
        .lines()
        .filter(|line| kinds.iter().any(|kind| line.contains(kind)))
        .collect();
    let metrics = counted(Release {
        minor: 37,
        ..RELEASE
    });
    let mut missing = String::new();
    let mut shown = BTreeSet::new();
    for family in metrics.registry.gather() {
        let mut labels: Vec<&str> = family.get_metric()[0]
            .get_label()
            .iter()
            .map(LabelPair::name)
            .collect();
        labels.sort_unstable();
        let kind = match family.get_field_type() {
            MetricType::COUNTER => "counter",
            MetricType::GAUGE => "gauge",
            _ => "histogram",
        };
        let (name, help) = (family.name(), family.help());
        let row = format!("| `{name}` | {kind} | {} | {help} |", labels.join(", "));
        if !listed.contains(row.as_str()) {
            writeln!(missing, "{row}").unwrap();
        }
        shown.insert(row);
    }
    assert!(missing.is_empty(), "not in {}:\n{missing}", path.display());
    let gone: Vec<_> = listed.iter().filter(|row| !shown.contains(**row)).collect();
    assert!(gone.is_empty(), "in {} alone:\n{gone:#?}", path.display());
}

/// Words of a text that look like metric names.
fn names(text: &str) -> BTreeSet<&str> {
    let prefixes = [
        "informer_",
        "kubernetes_",
        "leader_election_",
        "process_",
        "rest_client_",
        "statefulset_controller_",
        "statefulset_fence_",
        "workqueue_",
    ];
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)))
        .collect()
}

#[test]
fn alerts_and_dashboard_use_existing_metrics() {
    let text = counted(RELEASE).gather();
    let shown: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/monitoring");
    for file in ["alerts.yaml", "dashboard.json"] {
        let file = fs::read_to_string(folder.join(file)).unwrap();
        let named = names(&file);
        assert!(!named.is_empty());
        let unknown: Vec<_> = named.difference(&shown).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

#[test]
fn request_metrics_name_the_host_like_go() {
    let text = counted(RELEASE).gather();
    let line = "rest_client_requests_total{code=\"200\",host=\"127.0.0.1:6443\",method=\"GET\"} 1";
    assert!(text.lines().any(|found| found == line), "{text}");
}

#[test]
fn skipped_syncs_are_shown_from_1_37() {
    for (minor, full, shown) in [
        (33, "v1.36.2+", false),
        (36, "v1.36.2+", false),
        (37, "v1.37.0+", true),
    ] {
        let text = counted(Release::at(KubeVersion::v1(minor))).gather();
        assert!(text.contains(&format!("git_version=\"{full}")), "{text}");
        assert_eq!(text.contains("stale_sync_skips_total"), shown);
    }
}

#[test]
fn release_and_gates_are_shown() {
    let text = counted(RELEASE).gather();
    let samples: BTreeMap<&str, &str> = text
        .lines()
        .filter(|line| line.starts_with("kubernetes_"))
        .filter_map(|line| line.rsplit_once(' '))
        .collect();
    assert_eq!(
        samples["kubernetes_feature_enabled{name=\"A\",stage=\"ALPHA\"}"],
        "0"
    );
    assert_eq!(
        samples["kubernetes_feature_enabled{name=\"B\",stage=\"BETA\"}"],
        "1"
    );
    let info = samples
        .keys()
        .find(|name| name.starts_with("kubernetes_build_info{"));
    let info = info.unwrap();
    assert!(
        info.contains("git_version=\"v1.36.2+statefulset-controller-manager."),
        "{info}"
    );
    assert!(
        info.contains("major=\"1\",minor=\"36\",platform=\"linux/"),
        "{info}"
    );
}

#[test]
fn disabled_metrics_are_hidden() {
    let view = View {
        disabled: ["workqueue_depth".to_owned()].into(),
        ..View::default()
    };
    let text = Metrics::new(RELEASE, &FEATURES, view).unwrap().gather();
    assert!(!text.contains("workqueue_depth"));
    assert!(text.contains("workqueue_adds_total"));
}
