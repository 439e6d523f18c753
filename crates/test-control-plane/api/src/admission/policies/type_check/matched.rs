//! The kinds that a policy's rules name.

use std::sync::Arc;

use serde_json::Value;

use crate::kinds::Kind;
use crate::members::list;

/// The largest number of kinds that one rule contributes before the others are ignored.
///
/// Upstream: `maxTypesToCheck`
const KINDS_MAX: usize = 10;

/// Returns the kinds by group, version and kind. Rules with wildcards for groups or versions name
/// none; neither do subresources.
///
/// Upstream: `typesToCheck`
pub(super) fn kinds<'a>(spec: &Value, served: &'a [Arc<Kind>]) -> Vec<&'a Arc<Kind>> {
    let constraints = spec.get("matchConstraints").unwrap_or(&Value::Null);
    let mut found = Vec::new();
    for rule in list(constraints, "resourceRules") {
        let of_rule = of_rule(rule, served);
        let is_full = of_rule.len() == KINDS_MAX;
        found.extend(of_rule);
        if is_full {
            break;
        }
    }
    found.sort_by_key(|kind| identity(kind));
    found.dedup_by_key(|kind| identity(kind));
    found
}

fn identity(kind: &Kind) -> (&str, &str, &str) {
    (&kind.group, &kind.version, &kind.kind)
}

/// Returns the first kinds that a rule names.
fn of_rule<'a>(rule: &Value, served: &'a [Arc<Kind>]) -> Vec<&'a Arc<Kind>> {
    let (groups, versions) = (sorted(rule, "apiGroups"), sorted(rule, "apiVersions"));
    let has_wildcard = |names: &[&str]| names.iter().any(|name| name.contains('*'));
    if has_wildcard(&groups) || has_wildcard(&versions) {
        return Vec::new();
    }
    let mut resources = sorted(rule, "resources");
    resources.retain(|name| !name.contains(['*', '/']));
    let mut found = Vec::new();
    for group in groups {
        for version in &versions {
            for resource in &resources {
                let kinds = served.iter();
                found.extend(kinds.filter(|kind| is_named(kind, (group, version, resource))));
            }
        }
    }
    found.truncate(KINDS_MAX);
    found
}

/// Reports whether a kind is among those of a resource, by its plural or singular name. The empty
/// group stands for any.
///
/// Upstream: `DefaultRESTMapper.KindsFor`
fn is_named(kind: &Kind, (group, version, resource): (&str, &str, &str)) -> bool {
    let resource = resource.to_lowercase();
    (group.is_empty() || kind.group == group)
        && kind.version == version
        && (kind.plural == resource || kind.singular == resource)
}

fn sorted<'a>(rule: &'a Value, name: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = list(rule, name).filter_map(Value::as_str).collect();
    names.sort_unstable();
    names
}
