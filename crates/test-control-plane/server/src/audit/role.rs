//! The smallest role for a client's requests.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane_api::kinds::Verb;

use super::entry::AuditEntry;
use crate::auth::PolicyRule;

/// Returns the rules of the smallest role that allows the requests.
pub(super) fn minimal_rules(entries: Vec<AuditEntry>) -> Vec<PolicyRule> {
    let mut verbs: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for entry in entries {
        let created = matches!(entry.verb, Verb::Patch | Verb::Update) && entry.code == 201;
        let mut resource = entry.resource;
        if !entry.subresource.is_empty() {
            resource = format!("{resource}/{}", entry.subresource);
        }
        let wanted = verbs.entry((entry.group, resource)).or_default();
        wanted.insert(entry.verb.name());
        if created {
            wanted.insert(Verb::Create.name());
        }
    }
    let mut rules: BTreeMap<(String, BTreeSet<&str>), Vec<String>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        rules.entry((group, verbs)).or_default().push(resource);
    }
    let rule = |((group, verbs), resources): ((String, BTreeSet<&str>), Vec<String>)| PolicyRule {
        verbs: verbs.into_iter().map(str::to_owned).collect(),
        api_groups: vec![group],
        resources,
        ..PolicyRule::default()
    };
    rules.into_iter().map(rule).collect()
}
