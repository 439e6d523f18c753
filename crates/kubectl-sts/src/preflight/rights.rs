//! The permissions of the controller's account.

use serde_json::Value;

use super::check::{Check, Verdict};
use super::shipped::SHIPPED;
use crate::server::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Server};

const NAME: &str = "rights";
/// The role that every API server creates for the built-in controller.
const DEFAULT_ROLE: &str = "system:controller:statefulset-controller";

pub(super) async fn check(server: &Server) -> Check {
    let role = server.get_value(&CLUSTER_ROLES, None, DEFAULT_ROLE).await;
    let binding = server
        .get_value(&CLUSTER_ROLE_BINDINGS, None, SHIPPED)
        .await;
    match (role, binding) {
        (Ok(role), Ok(binding)) => judge(role.as_ref(), binding.as_ref()),
        (Err(error), _) | (_, Err(error)) => Check::unread(NAME, &error),
    }
}

fn judge(role: Option<&Value>, binding: Option<&Value>) -> Check {
    if role.is_none() {
        let text = format!(
            "ClusterRole {DEFAULT_ROLE} is missing, which every API server with RBAC creates: \
             restart an API server to have it created again"
        );
        return Check::new(NAME, Verdict::Stop, text);
    }
    let Some(binding) = binding else {
        let text = format!(
            "ClusterRoleBinding {SHIPPED} is missing: apply the accounts and roles of the shipped \
             manifests first"
        );
        return Check::new(NAME, Verdict::Todo, text);
    };
    let bound = binding.pointer("/roleRef/name").and_then(Value::as_str);
    if bound != Some(DEFAULT_ROLE) {
        let bound = bound.unwrap_or_default();
        let text = format!("ClusterRoleBinding {SHIPPED} grants {bound}, not {DEFAULT_ROLE}");
        return Check::new(NAME, Verdict::Stop, text);
    }
    let accounts = accounts(binding);
    if accounts.is_empty() {
        let text = format!("ClusterRoleBinding {SHIPPED} names no service account");
        return Check::new(NAME, Verdict::Stop, text);
    }
    let text = format!(
        "the built-in controller's ClusterRole is bound to {}",
        accounts.join(", ")
    );
    Check::new(NAME, Verdict::Ok, text)
}

/// The service accounts of a binding, as `namespace:name`.
fn accounts(binding: &Value) -> Vec<String> {
    let subjects = binding.get("subjects").and_then(Value::as_array);
    let subjects = subjects.map(Vec::as_slice).unwrap_or_default();
    let member = |subject: &Value, name: &str| {
        let found = subject.get(name).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let accounts = subjects
        .iter()
        .filter(|subject| member(subject, "kind") == "ServiceAccount");
    accounts
        .map(|subject| {
            format!(
                "{}:{}",
                member(subject, "namespace"),
                member(subject, "name")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn account_needs_the_default_role() {
        let role = json!({});
        assert_eq!(judge(None, None).verdict, Verdict::Stop);
        assert_eq!(judge(Some(&role), None).verdict, Verdict::Todo);
        let subject = json!({"kind": "ServiceAccount", "namespace": "ns", "name": "it"});
        let bound =
            |role: &str, subjects: Value| json!({"roleRef": {"name": role}, "subjects": subjects});
        let wrong = bound("view", json!([subject]));
        assert_eq!(judge(Some(&role), Some(&wrong)).verdict, Verdict::Stop);
        let nobody = bound(DEFAULT_ROLE, json!([]));
        assert_eq!(judge(Some(&role), Some(&nobody)).verdict, Verdict::Stop);
        let right = judge(Some(&role), Some(&bound(DEFAULT_ROLE, json!([subject]))));
        assert_eq!(
            right.text,
            "the built-in controller's ClusterRole is bound to ns:it"
        );
        assert!(right.is_passed());
    }
}
