//! Events: validation in both groups, selection, and printing.

use crate::support::{Plane, get_as};
use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

const OLD: &str = "/api/v1/namespaces/default/events";
const NEW: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const TIME: &str = "2026-01-01T00:00:00.000000Z";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

fn event(name: &str, changes: &Value) -> Value {
    let mut event = json!({
        "metadata": {"name": name},
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "type": "Normal", "reason": "Started", "note": "  it started\n", "action": "Starting",
        "eventTime": TIME, "reportingController": "example.com/c", "reportingInstance": "c-1",
    });
    for (member, value) in changes.as_object().unwrap() {
        event[member] = value.clone();
    }
    event
}

#[tokio::test(start_paused = true)]
async fn series_has_a_time_and_a_count_of_at_least_two() {
    let plane = plane().await;
    let series = json!({"series": {"count": 1, "lastObservedTime": null}});
    let expected = [
        "series.count: Invalid value: \"\": should be at least 2",
        "series.lastObservedTime: Required value",
    ];
    let found = plane.refused(Method::POST, NEW, &event("e", &series)).await;
    assert_eq!(found, expected);
    plane.create(NEW, &event("e", &json!({}))).await;
    let path = format!("{NEW}/e");
    let found = plane.refused(Method::PATCH, &path, &series).await;
    assert_eq!(found, expected);
    // The legacy form is not validated.
    let (code, _) = plane
        .call(Method::PATCH, &format!("{OLD}/e"), &series)
        .await;
    assert_eq!(code, 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn new_events_are_immutable_except_for_the_series() {
    let plane = plane().await;
    plane.create(NEW, &event("e", &json!({}))).await;
    let path = format!("{NEW}/e");
    for (change, field) in [
        (
            json!({"eventTime": "2026-01-01T00:00:01.000000Z"}),
            "eventTime",
        ),
        (json!({"note": "n"}), "message"),
        (json!({"reason": "r"}), "reason"),
        (json!({"type": "Warning"}), "type"),
        (json!({"action": "a"}), "action"),
        (json!({"regarding": {"name": "q"}}), "involvedObject"),
        (json!({"related": {"name": "q"}}), "related"),
        (json!({"deprecatedCount": 2}), "count"),
        (json!({"deprecatedSource": {"component": "c"}}), "source"),
        (
            json!({"reportingController": "example.com/d"}),
            "reportingController",
        ),
        (json!({"reportingInstance": "d-1"}), "reportingInstance"),
    ] {
        let found = plane.refused(Method::PATCH, &path, &change).await;
        // Two rules report the reason.
        let times = if field == "reason" { 2 } else { 1 };
        assert_eq!(found.len(), times, "{found:?}");
        assert!(
            found[0].starts_with(&format!("{field}: Invalid value: ")),
            "{found:?}"
        );
        assert!(found[0].ends_with(": field is immutable"), "{found:?}");
    }
    let series = json!({"series": {"count": 2, "lastObservedTime": TIME}});
    let (code, _) = plane.call(Method::PATCH, &path, &series).await;
    assert_eq!(code, 200);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn missing_or_long_fields_are_rejected_in_both_forms() {
    let plane = plane().await;
    let long = "x".repeat(129);
    let changes = json!({
        "reason": long, "action": "", "reportingInstance": long, "note": "x".repeat(1025),
    });
    let found = plane
        .refused(Method::POST, NEW, &event("e", &changes))
        .await;
    let expected = [
        "reportingInstance: Invalid value: \"\": can have at most 128 characters",
        "action: Required value",
        "reason: Invalid value: \"\": can have at most 128 characters",
        "message: Invalid value: \"\": can have at most 1024 characters",
    ];
    assert_eq!(found, expected);
    let old = json!({
        "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "eventTime": TIME,
        "reportingInstance": "i", "action": "a", "reason": "r",
    });
    let found = plane.refused(Method::POST, OLD, &old).await;
    assert_eq!(found[0], "reportingComponent: Required value");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_are_selected_by_source_and_type() {
    let plane = plane().await;
    plane.create(NEW, &event("new", &json!({}))).await;
    let warning = event("warning", &json!({"type": "Warning"}));
    plane.create(NEW, &warning).await;
    let old = json!({
        "metadata": {"name": "old"}, "involvedObject": {"namespace": "default"},
        "source": {"component": "kubelet", "host": "n"}, "type": "Normal",
    });
    plane.create(OLD, &old).await;
    for (path, selector, expected) in [
        (OLD, "source=example.com/c", &["new", "warning"][..]),
        (OLD, "source=kubelet", &["old"]),
        (
            OLD,
            "reportingComponent=example.com/c,type=Warning",
            &["warning"],
        ),
        (
            NEW,
            "reportingController=example.com/c,type=Normal",
            &["new"],
        ),
        (NEW, "type=Warning", &["warning"]),
    ] {
        let list = plane.get(&format!("{path}?fieldSelector={selector}")).await;
        let items = list["items"].as_array().unwrap().iter();
        let names: Vec<&str> = items
            .map(|item| item["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected, "{selector}");
    }
    let (code, _) = plane
        .call(
            Method::GET,
            &format!("{NEW}?fieldSelector=source=kubelet"),
            &Value::Null,
        )
        .await;
    assert_eq!(code, 400);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wide_table_shows_component_and_host() {
    let plane = plane().await;
    plane.create(NEW, &event("a-new", &json!({}))).await;
    let old = json!({
        "metadata": {"name": "b-old"}, "involvedObject": {"namespace": "default", "kind": "Pod"},
        "source": {"component": "kubelet", "host": "n"}, "count": 3,
        "firstTimestamp": "2025-12-31T23:59:00Z",
    });
    plane.create(OLD, &old).await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for path in [OLD, NEW] {
        let table = get_as(plane.0.server(), path, table).await.json();
        let cells: Vec<&Value> = table["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["cells"])
            .collect();
        let new = json!([
            "0s",
            "Normal",
            "Started",
            "pod/p",
            "",
            "example.com/c, c-1",
            "it started",
            "0s",
            1,
            "a-new",
        ]);
        let old = json!([
            "60s",
            "",
            "",
            "pod",
            "",
            "kubelet, n",
            "",
            "60s",
            3,
            "b-old"
        ]);
        assert_eq!(cells, [&new, &old], "{path}");
    }
    plane.stop().await;
}
