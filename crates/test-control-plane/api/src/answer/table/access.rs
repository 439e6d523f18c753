//! The cells of role bindings and quotas.

use serde_json::{Value, json};

use super::cells::{list, text};

pub(super) fn role_binding(binding: &Value, created: &str) -> Vec<Value> {
    let of_kind = |kind: &str| -> String {
        let found: Vec<String> = list(binding, "/subjects")
            .filter(|subject| text(subject, "/kind") == kind)
            .map(|subject| {
                let name = text(subject, "/name");
                if kind == "ServiceAccount" {
                    format!("{}/{name}", text(subject, "/namespace"))
                } else {
                    name.to_owned()
                }
            })
            .collect();
        found.join(", ")
    };
    let role = format!(
        "{}/{}",
        text(binding, "/roleRef/kind"),
        text(binding, "/roleRef/name")
    );
    vec![
        json!(text(binding, "/metadata/name")),
        json!(role),
        json!(created),
        json!(of_kind("User")),
        json!(of_kind("Group")),
        json!(of_kind("ServiceAccount")),
    ]
}

/// Formats the usage and hard limits of a quota: requests and limits in separate cells.
pub(super) fn quota(quota: &Value, created: &str) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let hard = quota.pointer("/status/hard").and_then(Value::as_object);
    for (resource, hard) in hard.into_iter().flatten() {
        let used = quota
            .pointer("/status/used")
            .and_then(|used| used.get(resource));
        let shown = |value: Option<&Value>| {
            let text = value.and_then(Value::as_str);
            text.unwrap_or("0").to_owned()
        };
        let line = format!("{resource}: {}/{}", shown(used), shown(Some(hard)));
        if resource.starts_with("limits") {
            limits.push(line);
        } else {
            requests.push(line);
        }
    }
    vec![
        json!(text(quota, "/metadata/name")),
        json!(requests.join(", ")),
        json!(limits.join(", ")),
        json!(created),
    ]
}
