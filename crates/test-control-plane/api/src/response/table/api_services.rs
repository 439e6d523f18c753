//! The cells of API services.

use serde_json::Value;

use super::texts::{list, text};

pub(super) fn service(service: &Value) -> String {
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
