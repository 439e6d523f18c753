//! Metrics in the two versions of autoscalers, see `metrics.txt`.

use serde_json::{Map, Value, json};

use super::text::{self, Order};
use crate::members::object_mut;

const MEMBERS: &str = include_str!("metrics.txt");

/// The types of metrics: their names, and the fields that have their sources.
const TYPES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
    ("External", "external"),
];

/// A part of an autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The desired values.
    Spec,
    /// The current values.
    Status,
}

/// A field of a metric.
struct Member {
    /// The name in autoscaling/v1.
    name: &'static str,
    is_required: bool,
    /// The path in autoscaling/v2.
    path: &'static str,
}

fn members(source: &str, part: Part) -> impl Iterator<Item = Member> {
    let part = match part {
        Part::Spec => "spec",
        Part::Status => "status",
    };
    let block = format!("{source}/{part}");
    let lines = MEMBERS
        .lines()
        .skip_while(move |line| *line != block)
        .skip(1);
    let rows = lines.map_while(|line| line.strip_prefix("  "));
    rows.filter_map(|row| row.split_once(' '))
        .map(|(name, path)| Member {
            name: name.trim_end_matches('!'),
            is_required: name.ends_with('!'),
            path,
        })
}

/// Encodes metrics of autoscaling/v2 in the form of autoscaling/v1; `None` if there are none.
pub(super) fn encode(metrics: &[Value], part: Part) -> Option<String> {
    let texts: Vec<String> = metrics
        .iter()
        .map(|metric| encode_one(metric, part))
        .collect();
    (!texts.is_empty()).then(|| format!("[{}]", texts.join(",")))
}

fn encode_one(metric: &Value, part: Part) -> String {
    let mut sources = vec![("type", text::encode(&metric["type"], Order::Any))];
    for (_, source) in TYPES {
        let Some(values) = metric.get(source).filter(|values| values.is_object()) else {
            continue;
        };
        let members = members(source, part).filter_map(|member| {
            let mut steps = member.path.split('.');
            let found = steps.try_fold(values, |value, step| value.get(step));
            let found = match found.filter(|found| !found.is_null()) {
                Some(found) => found.clone(),
                None if member.is_required && member.name.ends_with("Value") => json!("0"),
                None if member.is_required => json!(""),
                None => return None,
            };
            let order = match member.name {
                "target" => Order::Served("CrossVersionObjectReference"),
                "metricSelector" | "selector" => Order::Served("LabelSelector"),
                _ => Order::Any,
            };
            Some((member.name, text::encode(&found, order)))
        });
        sources.push((source, text::object(members)));
    }
    text::object(sources)
}

/// Decodes metrics of autoscaling/v1; `None` if they are no list of objects.
pub(super) fn decode(metrics: &Value, part: Part) -> Option<Vec<Value>> {
    let metrics = metrics.as_array()?.iter();
    metrics
        .map(|metric| decode_one(metric.as_object()?, part))
        .collect()
}

fn decode_one(metric: &Map<String, Value>, part: Part) -> Option<Value> {
    let mut decoded = json!({"type": metric.get("type").cloned().unwrap_or_default()});
    for (_, source) in TYPES {
        let Some(values) = metric.get(source).filter(|values| !values.is_null()) else {
            continue;
        };
        let values = values.as_object()?;
        let mut converted = json!({});
        for member in members(source, part) {
            let zero =
                || (member.is_required && member.name.ends_with("Value")).then(|| json!("0"));
            let Some(value) = values.get(member.name).cloned().or_else(zero) else {
                continue;
            };
            match member.path.split_once('.') {
                Some((holder, name)) => {
                    object_mut(&mut converted, holder).insert(name.to_owned(), value);
                }
                None => converted[member.path] = value,
            }
        }
        if part == Part::Spec {
            complete_target(source, object_mut(&mut converted, "target"));
        }
        decoded[source] = converted;
    }
    Some(decoded)
}

/// Infers the type of a target.
fn complete_target(source: &str, target: &mut Map<String, Value>) {
    let has =
        |target: &Map<String, Value>, name: &str| target.get(name).is_some_and(|it| !it.is_null());
    let kind = match source {
        "resource" | "containerResource" if has(target, "averageUtilization") => "Utilization",
        "object" if !has(target, "averageValue") => "Value",
        "external" if has(target, "value") => "Value",
        _ => "AverageValue",
    };
    if source == "object" && kind == "AverageValue" && target.get("value") == Some(&json!("0")) {
        target.remove("value");
    }
    target.insert("type".to_owned(), json!(kind));
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::schema::{Field, find_type};

    use super::*;

    #[test]
    fn every_path_exists() {
        for (name, source) in TYPES {
            for (part, suffix) in [(Part::Spec, "Source"), (Part::Status, "Status")] {
                let of = find_type(&format!("{name}Metric{suffix}"));
                assert!(members(source, part).count() >= 3, "{name}");
                for member in members(source, part) {
                    let mut of = of;
                    for step in member.path.split('.') {
                        let field = of.and_then(|of| of.field(step));
                        assert!(field.is_some(), "{name}: {}", member.path);
                        of = field.and_then(Field::object_type);
                    }
                }
            }
        }
    }
}
