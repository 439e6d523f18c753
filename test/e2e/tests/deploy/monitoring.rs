//! The alerts and the dashboard name metrics that the program shows.

use std::collections::BTreeSet;

use e2e::deploy::{documents, folder};
use serde_json::Value;

/// What the names of the program's metrics begin with.
const FAMILIES: [&str; 7] = [
    "informer_",
    "kubernetes_",
    "leader_election_",
    "process_",
    "rest_client_",
    "statefulset_controller_",
    "workqueue_",
];

/// The metrics of the list in the documentation, which is checked against the program.
fn listed() -> BTreeSet<String> {
    let rows = include_str!("../../../../docs/metrics.md").lines();
    let names = rows.filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// Every word of an expression that is the name of one of the program's metrics.
fn named(expression: &str) -> BTreeSet<String> {
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(|c| !is_of_a_name(c));
    let metrics = words.filter(|word| FAMILIES.iter().any(|family| word.starts_with(family)));
    metrics.map(str::to_owned).collect()
}

/// Checks that an expression names metrics, and only such as there are.
fn assert_known(expression: &str, listed: &BTreeSet<String>) {
    let named = named(expression);
    assert!(
        !named.is_empty() || expression.contains("up{"),
        "{expression} names no metric"
    );
    for name in named {
        let family = name.strip_suffix("_bucket").unwrap_or(&name);
        assert!(listed.contains(family), "there is no {name}");
    }
    let open = |c| expression.matches(c).count();
    assert_eq!(open('('), open(')'), "{expression}");
    assert_eq!(open('{'), open('}'), "{expression}");
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join("monitoring").join(name)).unwrap()
}

#[test]
fn alerts_are_about_metrics_that_there_are() {
    let listed = listed();
    let files = documents(&read("alerts.yaml"), "alerts.yaml");
    let rules = files[0]["groups"][0]["rules"].as_array().unwrap();
    let mut names = BTreeSet::new();
    for rule in rules {
        assert_known(rule["expr"].as_str().unwrap(), &listed);
        assert!(names.insert(rule["alert"].as_str().unwrap()));
        for text in ["summary", "description"] {
            assert!(rule["annotations"][text].is_string(), "{rule}");
        }
        assert!(["warning", "critical"].contains(&rule["labels"]["severity"].as_str().unwrap()));
    }
    let guide = include_str!("../../../../docs/operating.md");
    for name in names {
        assert!(guide.contains(name), "the guide doesn't tell of {name}");
    }
}

#[test]
fn the_dashboard_shows_metrics_that_there_are() {
    let listed = listed();
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 10);
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            assert_known(target["expr"].as_str().unwrap(), &listed);
        }
    }
}
