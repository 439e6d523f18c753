//! The cells of kinds with a pod template.

use serde_json::Value;

use super::texts::{labels, or_none};

/// Formats a selector, either with expressions or as a label map, as kubectl does.
pub(super) fn selector(object: &Value, pointer: &str) -> String {
    let Some(selector) = object.pointer(pointer) else {
        return "<none>".to_owned();
    };
    let has_form = ["matchLabels", "matchExpressions"]
        .iter()
        .any(|member| selector.get(member).is_some());
    let text = if has_form {
        crate::selectors::selector_text(Some(selector))
    } else {
        labels(selector, "")
    };
    or_none(&text).to_owned()
}
