//! The cells of horizontal pod autoscalers.

use serde_json::Value;

use super::texts::{list, number, text};

/// Maximum number of metrics in a cell.
const METRICS_MAX: usize = 2;

pub(super) fn target(autoscaler: &Value) -> String {
    let [kind, name] = ["kind", "name"].map(|it| {
        let pointer = format!("/spec/scaleTargetRef/{it}");
        text(autoscaler, &pointer)
    });
    format!("{kind}/{name}")
}

/// Upstream: `formatHPAMetrics`
pub(super) fn metrics(autoscaler: &Value) -> String {
    let metrics = list(autoscaler, "/spec/metrics");
    if metrics.len() == 0 {
        return "<none>".to_owned();
    }
    let more = metrics.len().saturating_sub(METRICS_MAX);
    let shown: Vec<String> = metrics
        .zip(0..METRICS_MAX)
        .map(|(metric, i)| {
            let current = list(autoscaler, "/status/currentMetrics").nth(i);
            cell(metric, current.unwrap_or(&Value::Null))
        })
        .collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} + {more} more...", shown.join(", ")),
    }
}

/// Formats the current value of a metric and its target.
fn cell(metric: &Value, status: &Value) -> String {
    let (member, is_resource) = match text(metric, "/type") {
        "External" => ("external", false),
        "Object" => ("object", false),
        "Pods" => ("pods", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let of = |holder: &Value, part: &str, value: &str| {
        let pointer = format!("/{member}/{part}/{value}");
        text(holder, &pointer).to_owned()
    };
    let average = of(metric, "target", "averageValue");
    let or_unknown = |text: String| Some(text).filter(|text| !text.is_empty());
    let or_unknown = |text| or_unknown(text).unwrap_or_else(|| "<unknown>".to_owned());
    let both = match (is_resource, average.is_empty()) {
        (true, true) => {
            let wanted = number(metric, &format!("/{member}/target/averageUtilization"));
            let pointer = format!("/{member}/current/averageUtilization");
            let current = status.pointer(&pointer).and_then(Value::as_i64);
            let current = current.map(|it| format!("{it}%")).unwrap_or_default();
            format!("{}/{wanted}%", or_unknown(current))
        }
        (_, false) => {
            let current = or_unknown(of(status, "current", "averageValue"));
            let mark = match member {
                "external" | "object" => " (avg)",
                _ => "",
            };
            format!("{current}/{average}{mark}")
        }
        (false, true) => {
            let current = or_unknown(of(status, "current", "value"));
            format!("{current}/{}", of(metric, "target", "value"))
        }
    };
    if is_resource {
        format!("{}: {both}", text(metric, &format!("/{member}/name")))
    } else {
        both
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metrics_show_current_value_and_target() {
        let cpu = json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}});
        let queue = json!({"type": "External", "external": {
            "metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "30"}}});
        let scaler = |metrics: Value, current: Value| {
            metrics_of(&json!({
                "spec": {"metrics": metrics, "scaleTargetRef": {"kind": "Deployment", "name": "w"}},
                "status": {"currentMetrics": current},
            }))
        };
        let current = json!([{"type": "Resource", "resource": {
            "name": "cpu", "current": {"averageUtilization": 12}}}]);
        assert_eq!(scaler(json!([]), json!([])), "Deployment/w <none>");
        assert_eq!(
            scaler(json!([cpu, queue]), current),
            "Deployment/w cpu: 12%/80%, <unknown>/30 (avg)"
        );
        assert_eq!(
            scaler(json!([cpu, cpu, cpu]), json!(null)),
            "Deployment/w cpu: <unknown>/80%, cpu: <unknown>/80% + 1 more..."
        );
    }

    fn metrics_of(autoscaler: &Value) -> String {
        format!("{} {}", target(autoscaler), metrics(autoscaler))
    }
}
