//! The cells of requests for certificates and of API services.

use serde_json::Value;

use super::cells::{list, text};

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

pub(super) fn api_service(service: &Value) -> String {
    let of = |member: &str| text(service, &format!("/spec/service/{member}"));
    match of("name") {
        "" => "Local".to_owned(),
        name => format!("{}/{name}", of("namespace")),
    }
}

pub(super) fn availability(service: &Value) -> String {
    let mut conditions = list(service, "/status/conditions");
    let available = conditions.find(|condition| text(condition, "/type") == "Available");
    match available.map(|it| (text(it, "/status"), text(it, "/reason"))) {
        None => "Unknown".to_owned(),
        Some(("True", _) | (_, "")) => "True".to_owned(),
        Some((status, reason)) => format!("{status} ({reason})"),
    }
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
