//! Rules of roles and their matching.

use serde::{Deserialize, Deserializer, Serialize};

use crate::auth::attributes::{Attributes, Resource, Subject};

/// Matches every verb, group, resource or path.
pub(crate) const ALL: &str = "*";

/// A rule of a role: verbs on resources or paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PolicyRule {
    /// The verbs; `*` matches all.
    #[serde(deserialize_with = "list")]
    pub verbs: Vec<String>,
    /// The API groups; the empty one is core, `*` matches all.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub api_groups: Vec<String>,
    /// The resources, such as `pods`, `pods/status`, `*/scale` and `*`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub resources: Vec<String>,
    /// The names of the objects; all objects if empty.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub resource_names: Vec<String>,
    /// Non-resource paths; a trailing `*` matches any suffix.
    #[serde(
        rename = "nonResourceURLs",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list"
    )]
    pub non_resource_urls: Vec<String>,
}

/// Deserializes a list, with null as the empty list.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl PolicyRule {
    /// Reports whether the rule allows a request. For the server.
    ///
    /// Upstream: `RuleAllows`.
    #[doc(hidden)]
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        has(&self.verbs, &attributes.verb)
            && match &attributes.subject {
                Subject::Resource(wanted) => {
                    has(&self.api_groups, &wanted.group)
                        && self.resources.iter().any(|r| names_resource(r, wanted))
                        && (self.resource_names.is_empty()
                            || self.resource_names.iter().any(|name| **name == wanted.name))
                }
                Subject::Path(path) => self
                    .non_resource_urls
                    .iter()
                    .any(|url| covers_path(url, path)),
            }
    }

    /// Formats the rule for messages.
    ///
    /// Upstream: `CompactString`.
    pub(crate) fn compact(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted(list)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// Formats a list of strings like Go's `%q`.
pub(crate) fn quoted(list: &[String]) -> String {
    let list: Vec<String> = list.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", list.join(" "))
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|text| text == ALL || text == wanted)
}

fn names_resource(rule: &str, wanted: &Resource<'_>) -> bool {
    if rule == ALL {
        return true;
    }
    if wanted.subresource.is_empty() {
        return rule == wanted.plural;
    }
    // A requested resource has at most one slash, so the rule's first slash separates the
    // subresource.
    rule.split_once('/').is_some_and(|(resource, subresource)| {
        subresource == wanted.subresource && (resource == ALL || resource == wanted.plural)
    })
}

/// Reports whether a rule's path, which may end in `*`, matches a path.
pub(crate) fn covers_path(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;
    use kube_test_control_plane_api::query::Query;

    fn allows(rule: &serde_json::Value, method: &Method, path: &str) -> bool {
        let rule: PolicyRule = serde_json::from_value(rule.clone()).unwrap();
        rule.allows(&Attributes::of(method, path, &Query::default()))
    }

    #[test]
    fn rule_requires_verb_group_resource_and_name() {
        let rule = json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["statefulsets"],
            "resourceNames": ["web"], "nonResourceURLs": null});
        let set = "/apis/apps/v1/namespaces/a/statefulsets/web";
        assert!(allows(&rule, &Method::GET, set));
        assert!(!allows(&rule, &Method::PUT, set));
        assert!(!allows(
            &rule,
            &Method::GET,
            "/apis/apps/v1/namespaces/a/statefulsets/db"
        ));
        assert!(!allows(
            &rule,
            &Method::GET,
            "/apis/apps/v1/namespaces/a/deployments/web"
        ));
        assert!(!allows(
            &rule,
            &Method::GET,
            "/apis/other/v1/namespaces/a/statefulsets/web"
        ));
        assert!(!allows(&rule, &Method::GET, &format!("{set}/status")));
    }

    #[test]
    fn resource_does_not_cover_its_subresources() {
        let scale = "/apis/apps/v1/namespaces/a/statefulsets/web/scale";
        let status = "/apis/apps/v1/namespaces/a/statefulsets/web/status";
        for (resource, on_scale, on_status) in [
            ("statefulsets", false, false),
            ("statefulsets/scale", true, false),
            ("*/scale", true, false),
            ("statefulsets/*", false, false),
            ("*", true, true),
        ] {
            let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": [resource]});
            assert_eq!(allows(&rule, &Method::GET, scale), on_scale, "{resource}");
            assert_eq!(allows(&rule, &Method::GET, status), on_status, "{resource}");
        }
    }

    #[test]
    fn trailing_star_matches_any_suffix() {
        for (url, path, allowed) in [
            ("*", "/metrics", true),
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/ping", false),
            ("/healthz/*", "/healthz/ping", true),
            ("/healthz/*", "/healthz", false),
        ] {
            let rule = json!({"verbs": ["get"], "nonResourceURLs": [url]});
            assert_eq!(allows(&rule, &Method::GET, path), allowed, "{url} {path}");
        }
        let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        assert!(!allows(&everything, &Method::GET, "/metrics"));
    }

    #[test]
    fn printed_rule_omits_empty_lists() {
        let rule: PolicyRule = serde_json::from_value(
            json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}),
        )
        .unwrap();
        assert_eq!(
            rule.compact(),
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}"
        );
    }
}
