//! The text of a `Status`, with the order of fields of Go's types.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Returns a `Status` as text. Clients print it as it is.
pub fn text(status: &Value) -> String {
    let ordered = Status::deserialize(status).and_then(|ordered| serde_json::to_string(&ordered));
    ordered.unwrap_or_else(|_| status.to_string())
}

/// Upstream: `metav1.Status`
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Status {
    kind: String,
    api_version: String,
    metadata: Value,
    #[serde(rename = "status", default, skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

/// Upstream: `metav1.StatusDetails`
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Details {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    causes: Option<Vec<Cause>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
}

/// Upstream: `metav1.StatusCause`
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cause {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::status::ApiError;

    #[test]
    fn fields_have_the_order_of_go() {
        let mut error = ApiError::new(422, "Invalid", "no \"a\"");
        error.details = Some(json!({
            "retryAfterSeconds": 1,
            "uid": "u",
            "kind": "pods",
            "name": "a",
            "group": "g",
            "causes": [{"field": "f", "message": "m", "reason": "r"}],
        }));
        let expected = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no \"a\"","reason":"Invalid","details":{"name":"a","group":"g","kind":"pods","uid":"u","causes":[{"reason":"r","message":"m","field":"f"}],"retryAfterSeconds":1},"code":422}"#;
        assert_eq!(error.to_text(), expected);
    }

    #[test]
    fn other_objects_keep_their_fields() {
        let other = json!({"kind": "Status", "more": 1});
        assert_eq!(text(&other), r#"{"kind":"Status","more":1}"#);
    }
}
