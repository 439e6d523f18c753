//! The cells of admission policies and their bindings.

use serde_json::{Map, Value};

use super::texts::{list, text};

pub(super) fn param_kind(policy: &Value) -> String {
    match policy.pointer("/spec/paramKind") {
        Some(kind) if kind.is_object() => {
            format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind"))
        }
        _ => "<unset>".to_owned(),
    }
}

/// Upstream: `printValidatingAdmissionPolicyBinding`
pub(super) fn param_reference(binding: &Value) -> String {
    let of = |member: &str| text(binding, &format!("/spec/paramRef/{member}"));
    match (of("namespace"), of("name")) {
        (_, "") => match binding.pointer("/spec/paramRef/selector") {
            Some(selector) if selector.is_object() => selector_text(selector),
            _ => "<unset>".to_owned(),
        },
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// Returns a selector as Go's protobuf types print it.
fn selector_text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let labels = labels.into_iter().flat_map(Map::iter);
    let labels =
        labels.map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()));
    let requirements = list(selector, "/matchExpressions").map(|it| {
        let values: Vec<&str> = list(it, "/values").filter_map(Value::as_str).collect();
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            text(it, "/key"),
            text(it, "/operator"),
            values.join(" ")
        )
    });
    let (labels, requirements): (Vec<_>, Vec<_>) = (labels.collect(), requirements.collect());
    let (labels, requirements) = (labels.concat(), requirements.concat());
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )
}
