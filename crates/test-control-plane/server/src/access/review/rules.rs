//! `SelfSubjectRulesReview`: the sender's permissions in a namespace.

use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use crate::auth::identity::{Identity, NODES, node_name};
use crate::auth::mode::AuthorizationMode;
use crate::auth::rbac::PolicyRule;
use crate::state::Access;

/// Returns the rules that apply to the user in a namespace.
///
/// # Errors
///
/// 400 without a namespace.
///
/// Upstream: `selfsubjectrulesreview`, `unionAuthzRulesHandler.RulesFor`.
pub(super) fn review_rules(access: &Access, user: &Identity, draft: &Draft) -> ApiResult<Value> {
    let namespace = draft.text("/spec/namespace").unwrap_or_default();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    let mut errors: Vec<String> = Vec::new();
    let mut incomplete = false;
    for mode in access.authorization.modes() {
        match mode {
            AuthorizationMode::AlwaysAllow => {
                let all = json!(["*"]);
                resources.push(json!({"verbs": all, "apiGroups": all, "resources": all}));
                paths.push(json!({"verbs": all, "nonResourceURLs": all}));
            }
            AuthorizationMode::AlwaysDeny => {}
            AuthorizationMode::Node => {
                if user.is_in(NODES) && node_name(&user.name).is_some() {
                    incomplete = true;
                    let why = "node authorizer does not support user rule resolution";
                    errors.push(why.to_owned());
                }
            }
            AuthorizationMode::Rbac => {
                let grants = access.policy_index().grants(user, namespace);
                for rule in grants.rules() {
                    resources.extend(resource_rule(rule));
                    paths.extend(path_rule(rule));
                }
                errors.extend(grants.errors(false));
            }
        }
    }
    let mut review = json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": resources,
            "nonResourceRules": paths,
            "incomplete": incomplete,
        },
    });
    if !errors.is_empty() {
        review["status"]["evaluationError"] = json!(errors.join(", "));
    }
    Ok(review)
}

fn resource_rule(rule: &PolicyRule) -> Option<Value> {
    if rule.resources.is_empty() {
        return None;
    }
    let mut value = json!({
        "verbs": rule.verbs,
        "apiGroups": rule.api_groups,
        "resources": rule.resources,
    });
    if !rule.resource_names.is_empty() {
        value["resourceNames"] = json!(rule.resource_names);
    }
    Some(value)
}

fn path_rule(rule: &PolicyRule) -> Option<Value> {
    let urls = &rule.non_resource_urls;
    (!urls.is_empty()).then(|| json!({"verbs": rule.verbs, "nonResourceURLs": urls}))
}
