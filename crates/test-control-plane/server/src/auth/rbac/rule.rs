//! Rules of roles, and what they allow.

use serde::{Deserialize, Deserializer, Serialize};

use crate::auth::attributes::{Attributes, Resource, Subject};

/// Stands for every verb, group, resource or path.
pub(crate) const ALL: &str = "*";

/// A rule of a role: what may be done to which resources or paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// What may be done; `*` is everything.
    #[serde(deserialize_with = "list")]
    pub verbs: Vec<String>,
    /// The API groups; the empty one is core, `*` is every group.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub api_groups: Vec<String>,
    /// The resources, as in `pods`, `pods/status`, `*/scale` and `*`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub resources: Vec<String>,
    /// The names of the objects; if there are none, all objects.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub resource_names: Vec<String>,
    /// Paths that are no resources; a `*` at the end is any rest.
    #[serde(
        rename = "nonResourceURLs",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list"
    )]
    pub non_resource_urls: Vec<String>,
}

/// A list, where null is one too.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl PolicyRule {
    /// Whether the rule allows what is wanted.
    ///
    /// Upstream: `RuleAllows`.
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

    /// The rule as messages print it.
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

/// A list of texts as Go prints it with `%q`.
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
    // Between resource and subresource of a request there may be no slash, so the first one counts.
    rule.split_once('/').is_some_and(|(resource, subresource)| {
        subresource == wanted.subresource && (resource == ALL || resource == wanted.plural)
    })
}

/// Whether the path of a rule, which may end in `*`, stands for another.
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
    fn verbs_groups_resources_and_names_must_fit() {
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
    fn subresources_are_resources_of_their_own() {
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
    fn a_star_at_the_end_of_a_path_is_any_rest() {
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
    fn rules_are_printed_without_what_they_leave_open() {
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
