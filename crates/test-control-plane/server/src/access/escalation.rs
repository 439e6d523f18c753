//! Privilege escalation checks: users can grant only the permissions they hold. A write of a role
//! needs every permission in it, and a write of a binding every permission of its role, or else the
//! verbs `escalate` and `bind`.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane_api::kinds::{Verb, is_policy};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::status::ApiResult;
use serde_json::Value;

use super::authorize::decide;
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::forbidden::forbidden_object;
use crate::auth::identity::{Identity, MASTERS};
use crate::auth::rbac::PolicyRule;
use crate::auth::rbac::index::RoleRef;
use crate::auth::rbac::rule::{ALL, covers_path, quoted};
use crate::route::ResourceRequest;
use crate::state::Access;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks a write of a role or a binding; `old` is the stored object.
///
/// # Errors
///
/// 403 with the permissions that the sender lacks, 404 for a binding to a missing role.
///
/// Upstream: the `policybased` storages.
pub(crate) fn check_escalation(
    access: &Access,
    request: &ResourceRequest,
    new: &Draft,
    old: Option<&Draft>,
) -> ApiResult<()> {
    let kind = &request.kind;
    let Some(user) = request.user.as_deref().filter(|user| !user.is_in(MASTERS)) else {
        return Ok(());
    };
    if !is_policy(&kind.storage) || old.is_some_and(|old| is_only_mutating_gc_fields(new, old)) {
        return Ok(());
    }
    let name = new.metadata().name();
    let may = |verb: &str, resource: &str, name: &str| {
        may(access, user, &request.namespace, (verb, resource, name))
    };
    if let Some(role) = new.value.get("roleRef") {
        let role: RoleRef = serde_json::from_value(role.clone()).unwrap_or_default();
        let resource = role.resource().unwrap_or_default();
        if may("bind", resource, &role.name) {
            return Ok(());
        }
        let rules = access.policy_index().rules_of(&role, &request.namespace)?;
        return confirm(access, user, request, name, &rules);
    }
    // The URL of a create lacks the name, and the permission is checked with the URL's name.
    let named = match request.verb {
        Verb::Create => "",
        _ => request.name.as_str(),
    };
    if may("escalate", &kind.plural, named) {
        return Ok(());
    }
    confirm(access, user, request, name, &rules_of(new))?;
    if aggregates(new) || old.is_some_and(aggregates) {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        confirm(access, user, request, name, &everything())
            .map_err(|_| forbidden_object(&kind.group, &kind.plural, name, why))?;
    }
    Ok(())
}

/// Reports whether the user has a verb on a role, cluster-wide or in the namespace.
fn may(
    access: &Access,
    user: &Identity,
    namespace: &str,
    (verb, resource, name): (&str, &str, &str),
) -> bool {
    let wanted = Attributes::resource(
        verb,
        Resource {
            group: GROUP.into(),
            plural: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Resource::default()
        },
    );
    decide(access, user, &wanted).is_allowed()
}

/// Rejects a grant of permissions that the user lacks.
///
/// Upstream: `ConfirmNoEscalation`.
fn confirm(
    access: &Access,
    user: &Identity,
    request: &ResourceRequest,
    name: &str,
    granted: &[PolicyRule],
) -> ApiResult<()> {
    let grants = access.policy_index().grants(user, &request.namespace);
    let owned: Vec<&PolicyRule> = grants.rules().collect();
    let missing = missing(&owned, granted);
    if missing.is_empty() {
        return Ok(());
    }
    let lines: BTreeSet<String> = missing.iter().map(PolicyRule::compact).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let mut why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        lines.join("\n")
    );
    if let Some(errors) = grants.errors(true) {
        why = format!("{why}; resolution errors: [{errors}]");
    }
    let kind = &request.kind;
    Err(forbidden_object(&kind.group, &kind.plural, name, &why))
}

fn rules_of(role: &Draft) -> Vec<PolicyRule> {
    let rules = role.value.get("rules").filter(|rules| !rules.is_null());
    // Validation rejects malformed rules.
    let rules = rules.map(|rules| serde_json::from_value(rules.clone()));
    rules.and_then(Result::ok).unwrap_or_default()
}

fn aggregates(role: &Draft) -> bool {
    let selectors = role.value.pointer("/aggregationRule/clusterRoleSelectors");
    selectors
        .and_then(Value::as_array)
        .is_some_and(|s| !s.is_empty())
}

fn everything() -> [PolicyRule; 2] {
    let all = || vec![ALL.to_owned()];
    [
        PolicyRule {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            ..PolicyRule::default()
        },
        PolicyRule {
            verbs: all(),
            non_resource_urls: all(),
            ..PolicyRule::default()
        },
    ]
}

/// Reports whether an update changes at most owner references and finalizers.
///
/// Upstream: `IsOnlyMutatingGCFields`.
fn is_only_mutating_gc_fields(new: &Draft, old: &Draft) -> bool {
    let rest = |draft: &Draft| {
        let mut value = draft.value.clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for member in [
                "ownerReferences",
                "finalizers",
                "managedFields",
                "resourceVersion",
            ] {
                metadata.remove(member);
            }
        }
        value
    };
    rest(new) == rest(old)
}

/// Returns the permissions in `wanted` that no rule in `owned` covers, with the verbs on each
/// resource merged into one rule.
///
/// Upstream: `Covers`, `BreakdownRule` and `CompactRules`.
fn missing(owned: &[&PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut complex = Vec::new();
    let mut simple: BTreeMap<(String, String), PolicyRule> = BTreeMap::new();
    for permission in wanted.iter().flat_map(single_permissions) {
        if owned.iter().any(|rule| covers(rule, &permission)) {
            continue;
        }
        if permission.resources.is_empty() || !permission.resource_names.is_empty() {
            complex.push(permission);
            continue;
        }
        let key = (
            permission.api_groups.concat(),
            permission.resources.concat(),
        );
        match simple.get_mut(&key) {
            Some(rule) => rule.verbs.extend(permission.verbs),
            None => {
                simple.insert(key, permission);
            }
        }
    }
    complex.extend(simple.into_values());
    complex
}

/// Splits a rule into rules with a single verb, group, resource, name or path.
fn single_permissions(rule: &PolicyRule) -> Vec<PolicyRule> {
    let mut permissions = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let permission = PolicyRule {
                    verbs: vec![verb.clone()],
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    permissions.push(permission);
                    continue;
                }
                permissions.extend(rule.resource_names.iter().map(|name| PolicyRule {
                    resource_names: vec![name.clone()],
                    ..permission.clone()
                }));
            }
        }
    }
    for url in &rule.non_resource_urls {
        permissions.extend(rule.verbs.iter().map(|verb| PolicyRule {
            verbs: vec![verb.clone()],
            non_resource_urls: vec![url.clone()],
            ..PolicyRule::default()
        }));
    }
    permissions
}

/// Reports whether a rule covers a permission returned by [`single_permissions`].
fn covers(rule: &PolicyRule, permission: &PolicyRule) -> bool {
    let has = |list: &[String], wanted: &[String]| {
        list.iter().any(|l| l == ALL) || wanted.iter().all(|w| list.contains(w))
    };
    let resources = has(&rule.resources, &permission.resources)
        || permission.resources.iter().all(|wanted| {
            let subresource = wanted.split_once('/').map(|(_, sub)| format!("*/{sub}"));
            rule.resources.contains(wanted)
                || subresource.is_some_and(|any| rule.resources.contains(&any))
        });
    let names = rule.resource_names.is_empty()
        || !permission.resource_names.is_empty()
            && permission
                .resource_names
                .iter()
                .all(|n| rule.resource_names.contains(n));
    let urls = permission.non_resource_urls.iter().all(|wanted| {
        rule.non_resource_urls
            .iter()
            .any(|url| covers_path(url, wanted))
    });
    has(&rule.verbs, &permission.verbs)
        && has(&rule.api_groups, &permission.api_groups)
        && resources
        && names
        && urls
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(value: &Value) -> Vec<PolicyRule> {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn lines(owned: &Value, wanted: &Value) -> Vec<String> {
        let owned = rules(owned);
        let owned: Vec<&PolicyRule> = owned.iter().collect();
        let missing = missing(&owned, &rules(wanted));
        missing.iter().map(PolicyRule::compact).collect()
    }

    #[test]
    fn missing_permissions_are_grouped_by_resource() {
        let owned = json!([
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "secrets"]},
            {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*/scale"]},
            {"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]},
        ]);
        let wanted = json!([
            {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"]},
            {"verbs": ["delete"], "apiGroups": [""], "resources": ["secrets"],
                "resourceNames": ["a"]},
            {"verbs": ["update"], "apiGroups": ["apps"], "resources": ["statefulsets/scale"]},
            {"verbs": ["get"], "nonResourceURLs": ["/healthz/ping", "/metrics"]},
        ]);
        assert_eq!(
            lines(&owned, &wanted),
            [
                "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"a\"], \
                 Verbs:[\"delete\"]}",
                "{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}",
                "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}",
            ]
        );
    }

    #[test]
    fn named_objects_do_not_cover_all_objects() {
        let some = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"],
            "resourceNames": ["a"]}]);
        let all = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        assert!(lines(&all, &some).is_empty());
        assert_eq!(lines(&some, &all).len(), 1);
    }

    #[test]
    fn only_a_star_covers_a_star() {
        let star = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        let many = json!([{"verbs": ["get", "list", "watch", "create", "update", "patch", "delete",
            "deletecollection"], "apiGroups": [""], "resources": ["pods"]}]);
        assert!(lines(&star, &many).is_empty());
        assert!(lines(&star, &star).is_empty());
        assert_eq!(
            lines(&many, &star),
            ["{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}"]
        );
    }
}
