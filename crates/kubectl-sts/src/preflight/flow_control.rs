//! API priority and fairness for the controller's requests.

use serde_json::Value;

use super::check::{Check, Verdict};
use super::shipped::SHIPPED;
use crate::server::{FLOW_SCHEMAS, Server};

const NAME: &str = "flow-control";

pub(super) async fn check(server: &Server) -> Check {
    match server.get_value(&FLOW_SCHEMAS, None, SHIPPED).await {
        Ok(schema) => judge(schema.as_ref()),
        Err(error) => Check::unread(NAME, &error),
    }
}

fn judge(schema: Option<&Value>) -> Check {
    let Some(schema) = schema else {
        let text = format!(
            "FlowSchema {SHIPPED} is missing: without it the controller's requests share a \
             priority level with ordinary workloads; apply the shipped one"
        );
        return Check::new(NAME, Verdict::Todo, text);
    };
    let level = schema.pointer("/spec/priorityLevelConfiguration/name");
    let level = level.and_then(Value::as_str).unwrap_or_default();
    let text = format!("FlowSchema {SHIPPED} assigns priority level {level}");
    Check::new(NAME, Verdict::Ok, text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schema_assigns_the_priority_level() {
        assert_eq!(judge(None).verdict, Verdict::Todo);
        let schema = json!({"spec": {"priorityLevelConfiguration": {"name": "workload-high"}}});
        let check = judge(Some(&schema));
        assert!(check.is_passed());
        assert!(
            check.text.ends_with("priority level workload-high"),
            "{}",
            check.text
        );
    }
}
