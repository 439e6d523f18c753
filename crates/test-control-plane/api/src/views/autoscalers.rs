//! Autoscalers: stored in the form of autoscaling/v2, and served in that of autoscaling/v1 as well,
//! which has annotations for what its fields can't hold.
//!
//! Upstream: `pkg/apis/autoscaling/v1/conversion.go`

mod metrics;
mod text;

use kube_apimachinery::schema::{self, UnknownMembers, find_type};
use serde_json::{Map, Value, json};

use self::metrics::Part;
use self::text::Order;
use crate::members::{object_mut, set_or_remove, text};

/// The annotations of autoscaling/v1. The stored form has none of them.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// The utilization that an autoscaler without metrics aims at, in percent.
const UTILIZATION: i64 = 80;

/// The fields of autoscaling/v1 for the utilization of processors.
const TARGET_UTILIZATION: &str = "targetCPUUtilizationPercentage";
const CURRENT_UTILIZATION: &str = "currentCPUUtilizationPercentage";

/// Removes the annotations of autoscaling/v1.
pub(super) fn drop_annotations(autoscaler: &mut Map<String, Value>) {
    take_annotations(autoscaler);
}

/// Removes the annotations of autoscaling/v1, and returns them.
fn take_annotations(autoscaler: &mut Map<String, Value>) -> Map<String, Value> {
    let metadata = autoscaler
        .get_mut("metadata")
        .and_then(Value::as_object_mut);
    let mut taken = Map::new();
    let Some(metadata) = metadata else {
        return taken;
    };
    if let Some(annotations) = metadata
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    {
        for name in ANNOTATIONS {
            taken.extend(annotations.remove_entry(name));
        }
        if annotations.is_empty() && !taken.is_empty() {
            metadata.remove("annotations");
        }
    }
    taken
}

/// Converts the form of autoscaling/v2 to that of autoscaling/v1.
pub(super) fn to_served(autoscaler: &mut Map<String, Value>) {
    take_annotations(autoscaler);
    let mut annotations = Map::new();
    let mut annotate = |name: &str, text: Option<String>| {
        set_or_remove(&mut annotations, name, text.map(Value::from));
    };
    if let Some(spec) = autoscaler.get_mut("spec").and_then(Value::as_object_mut) {
        let metrics = elements(spec.remove("metrics"));
        let (plain, others): (Vec<Value>, Vec<Value>) = metrics
            .into_iter()
            .partition(|metric| utilization(metric, "target").is_some());
        let target = plain
            .first()
            .and_then(|metric| utilization(metric, "target"));
        set_or_remove(spec, TARGET_UTILIZATION, target.cloned());
        annotate(METRICS, metrics::encode(&others, Part::Spec));
        let behavior = spec.remove("behavior").filter(Value::is_object);
        annotate(
            BEHAVIOR,
            behavior
                .map(|it| text::encode(&it, Order::Internal("HorizontalPodAutoscalerBehavior"))),
        );
    }
    if let Some(status) = autoscaler.get_mut("status").and_then(Value::as_object_mut) {
        let metrics = elements(status.remove("currentMetrics"));
        let current = metrics
            .iter()
            .rev()
            .find_map(|metric| utilization(metric, "current"));
        set_or_remove(status, CURRENT_UTILIZATION, current.cloned());
        annotate(CURRENT_METRICS, metrics::encode(&metrics, Part::Status));
        status.entry("currentReplicas").or_insert(json!(0));
        let conditions = elements(status.remove("conditions"));
        let conditions = Some(conditions).filter(|conditions| !conditions.is_empty());
        let order = Order::Served("HorizontalPodAutoscalerCondition");
        annotate(
            CONDITIONS,
            conditions.map(|it| text::encode(&Value::Array(it), order)),
        );
    }
    if !annotations.is_empty() {
        let metadata = autoscaler.entry("metadata").or_insert_with(|| json!({}));
        object_mut(metadata, "annotations").extend(annotations);
    }
}

/// Converts the form of autoscaling/v1 to that of autoscaling/v2.
pub(super) fn to_stored(autoscaler: &mut Map<String, Value>) {
    let annotations = take_annotations(autoscaler);
    let read = |name: &str| -> Option<Value> {
        serde_json::from_str(annotations.get(name)?.as_str()?).ok()
    };
    if let Some(spec) = autoscaler.get_mut("spec").and_then(Value::as_object_mut) {
        let metrics = read(METRICS).and_then(|text| metrics::decode(&text, Part::Spec));
        let mut metrics = metrics.and_then(|list| typed_list("MetricSpec", list));
        if let Some(target) = spec.remove(TARGET_UTILIZATION).filter(|it| !it.is_null()) {
            let metric = metric(
                "target",
                json!({"type": "Utilization", "averageUtilization": target}),
            );
            metrics.get_or_insert_default().push(metric);
        }
        let metrics = metrics.filter(|metrics| !metrics.is_empty());
        let metrics = metrics.unwrap_or_else(|| {
            vec![metric(
                "target",
                json!({"type": "Utilization", "averageUtilization": UTILIZATION}),
            )]
        });
        spec.insert("metrics".to_owned(), Value::Array(metrics));
        let behavior = read(BEHAVIOR).map(text::in_lower_case);
        let behavior = behavior.filter(|it| {
            it.as_object()
                .is_some_and(|it| it.values().any(|it| !it.is_null()))
        });
        let behavior = behavior.and_then(|it| typed("HorizontalPodAutoscalerBehavior", it));
        set_or_remove(spec, "behavior", behavior);
    }
    if let Some(status) = autoscaler.get_mut("status").and_then(Value::as_object_mut) {
        let current = status
            .remove(CURRENT_UTILIZATION)
            .filter(|it| !it.is_null());
        let metrics = read(CURRENT_METRICS).and_then(|text| metrics::decode(&text, Part::Status));
        let metrics = metrics.and_then(|list| typed_list("MetricStatus", list));
        let metrics = metrics.or_else(|| {
            Some(vec![metric(
                "current",
                json!({"averageUtilization": current?}),
            )])
        });
        set_or_remove(status, "currentMetrics", metrics.map(Value::Array));
        let conditions = read(CONDITIONS).and_then(|list| match list {
            Value::Array(list) => typed_list("HorizontalPodAutoscalerCondition", list),
            _ => None,
        });
        set_or_remove(status, "conditions", conditions.map(Value::Array));
    }
}

/// Returns a value of a type; `None` if a field has another one.
fn typed(name: &str, value: Value) -> Option<Value> {
    let of = find_type(name)?;
    schema::normalize_owned(of, value, UnknownMembers::Drop, "").ok()
}

fn typed_list(name: &str, list: Vec<Value>) -> Option<Vec<Value>> {
    list.into_iter().map(|value| typed(name, value)).collect()
}

fn elements(list: Option<Value>) -> Vec<Value> {
    match list {
        Some(Value::Array(elements)) => elements,
        _ => Vec::new(),
    }
}

/// Returns the utilization of processors that a metric aims at, or has.
fn utilization<'a>(metric: &'a Value, part: &str) -> Option<&'a Value> {
    let resource = metric.get("resource")?;
    let is_plain = text(metric, "type") == "Resource" && text(resource, "name") == "cpu";
    let found = resource.get(part)?.get("averageUtilization")?;
    Some(found).filter(|found| is_plain && !found.is_null())
}

/// Returns the metric of the processors.
fn metric(part: &str, value: Value) -> Value {
    let mut resource = json!({"name": "cpu"});
    resource[part] = value;
    json!({"type": "Resource", "resource": resource})
}
