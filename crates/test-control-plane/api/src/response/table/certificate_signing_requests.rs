//! The cells of certificate signing requests.

use serde_json::Value;

use super::texts::{list, text};

/// Upstream: `extractCSRStatus`
pub(super) fn status(request: &Value) -> String {
    let has = |wanted: &str| {
        let mut conditions = list(request, "/status/conditions");
        conditions.any(|condition| text(condition, "/type") == wanted)
    };
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !text(request, "/status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    status
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn request_shows_decision_and_certificate() {
        let of = |conditions: &[&str], certificate: &str| {
            let conditions: Vec<Value> = conditions.iter().map(|it| json!({"type": it})).collect();
            status(&json!({"status": {"conditions": conditions, "certificate": certificate}}))
        };
        assert_eq!(of(&[], ""), "Pending");
        assert_eq!(of(&["Approved"], "eA=="), "Approved,Issued");
        assert_eq!(of(&["Approved", "Failed"], ""), "Approved,Failed");
        assert_eq!(of(&["Denied"], ""), "Denied");
    }
}
