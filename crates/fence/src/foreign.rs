//! Traces that the built-in controller leaves on the objects of a served set.

use jiff::Timestamp;
use serde_json::Value;

/// The manager of the built-in controllers' writes in `managedFields`.
const MANAGER: &str = "kube-controller-manager";

/// A write that only a StatefulSet controller makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// The creation of a pod or a revision with its owner.
    Owned,
    /// A write of a set's status after this time.
    Status(Timestamp),
}

/// Returns true if the built-in controller made this write to a stored object. Other controllers of
/// the same program write to pods as well, but neither their owners nor a set's status.
pub fn is_foreign(object: &Value, trace: Trace) -> bool {
    let entries = object.pointer("/metadata/managedFields");
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let text = |entry: &Value, field: &str| {
        let text = entry.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut of_manager = entries.filter(|entry| text(entry, "manager") == MANAGER);
    of_manager.any(|entry| {
        let subresource = text(entry, "subresource");
        match trace {
            Trace::Owned => {
                let owners = "/fieldsV1/f:metadata/f:ownerReferences";
                subresource.is_empty() && entry.pointer(owners).is_some()
            }
            Trace::Status(since) => {
                let time = text(entry, "time").parse::<Timestamp>();
                subresource == "status" && time.is_ok_and(|time| time > since)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(manager: &str, subresource: &str, time: &str, fields: &Value) -> Value {
        let entry = json!({
            "manager": manager, "operation": "Update", "subresource": subresource,
            "time": time, "fieldsV1": fields,
        });
        json!({"metadata": {"managedFields": [entry]}})
    }

    #[test]
    fn creation_with_owner_is_a_trace() {
        let owners = json!({"f:metadata": {"f:ownerReferences": {}}, "f:spec": {}});
        let labels = json!({"f:metadata": {"f:labels": {}}});
        let time = "2026-01-01T00:00:00Z";
        let foreign = |object: Value| is_foreign(&object, Trace::Owned);
        assert!(foreign(object(MANAGER, "", time, &owners)));
        assert!(!foreign(object(MANAGER, "", time, &labels)));
        assert!(!foreign(object(MANAGER, "status", time, &owners)));
        assert!(!foreign(object("velero-server", "", time, &owners)));
        assert!(!foreign(json!({"metadata": {}})));
    }

    #[test]
    fn later_status_is_a_trace() {
        let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let foreign = |subresource: &str, time: &str| {
            let object = object(MANAGER, subresource, time, &json!({"f:status": {}}));
            is_foreign(&object, Trace::Status(since))
        };
        assert!(foreign("status", "2026-01-01T00:00:01Z"));
        assert!(!foreign("status", "2026-01-01T00:00:00Z"));
        assert!(!foreign("", "2026-01-01T00:00:01Z"));
        assert!(!foreign("status", "no time"));
    }
}
