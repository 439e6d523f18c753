//! Tests that alerts and dashboard are complete. The program's own tests check that their metrics
//! exist.

use std::collections::BTreeSet;

use e2e::deploy::{documents, folder};
use serde_json::Value;

fn assert_balanced(expression: &str) {
    let count = |c| expression.matches(c).count();
    assert_eq!(count('('), count(')'), "{expression}");
    assert_eq!(count('{'), count('}'), "{expression}");
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join("monitoring").join(name)).unwrap()
}

#[test]
fn alerts_are_complete_and_documented() {
    let files = documents(&read("alerts.yaml"), "alerts.yaml");
    let rules = files[0]["groups"][0]["rules"].as_array().unwrap();
    let mut names = BTreeSet::new();
    for rule in rules {
        assert_balanced(rule["expr"].as_str().unwrap());
        assert!(names.insert(rule["alert"].as_str().unwrap()));
        for text in ["summary", "description"] {
            assert!(rule["annotations"][text].is_string(), "{rule}");
        }
        assert!(["warning", "critical"].contains(&rule["labels"]["severity"].as_str().unwrap()));
    }
    let guide = include_str!("../../../../docs/operating.md");
    for name in names {
        assert!(guide.contains(name), "the guide doesn't mention {name}");
    }
}

#[test]
fn dashboard_has_panels_with_queries() {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 10);
    for panel in panels {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "panel {} has no query", panel["title"]);
        for target in targets {
            assert_balanced(target["expr"].as_str().unwrap());
        }
    }
}
