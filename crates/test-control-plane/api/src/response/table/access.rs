//! The cells of role bindings and quotas.

use serde_json::Value;

use super::texts::{list, text};

pub(super) fn role(binding: &Value) -> String {
    let [kind, name] = ["/roleRef/kind", "/roleRef/name"].map(|member| text(binding, member));
    format!("{kind}/{name}")
}

/// Returns the names of the subjects of a kind.
pub(super) fn subjects(binding: &Value, kind: &str) -> String {
    let name = |subject| match kind {
        "ServiceAccount" => format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")),
        _ => text(subject, "/name").to_owned(),
    };
    let subjects = list(binding, "/subjects").filter(|subject| text(subject, "/kind") == kind);
    subjects.map(name).collect::<Vec<String>>().join(", ")
}

/// Formats the usage and the hard limits of a quota's limits, or of its other resources.
pub(super) fn quota(quota: &Value, is_limits: bool) -> String {
    let hard = quota.pointer("/status/hard").and_then(Value::as_object);
    let hard = hard.into_iter().flatten();
    let lines = hard.filter(|(resource, _)| resource.starts_with("limits") == is_limits);
    let line = |(resource, hard): (&String, &Value)| {
        let used = quota["status"]["used"][resource].as_str();
        let [used, hard] = [used, hard.as_str()].map(|amount| amount.unwrap_or("0"));
        format!("{resource}: {used}/{hard}")
    };
    lines.map(line).collect::<Vec<String>>().join(", ")
}
