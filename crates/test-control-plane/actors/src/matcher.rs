//! Pod matchers of rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use kube_test_control_plane_api::object::MetadataRef;
use kube_test_control_plane_api::setters;

/// A text pattern in which each `*` matches any text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Creates a pattern. Without a `*` it matches only itself.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.to_owned())
    }

    /// Reports whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else {
            return false;
        };
        let parts: Vec<&str> = parts.collect();
        let Some((last, middle)) = parts.split_last() else {
            return rest.is_empty();
        };
        for part in middle {
            let Some(at) = rest.find(part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

impl From<&str> for Pattern {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}

impl From<&String> for Pattern {
    fn from(pattern: &String) -> Self {
        Self::new(pattern)
    }
}

impl From<String> for Pattern {
    fn from(pattern: String) -> Self {
        Self(pattern)
    }
}

/// Selects the pods of a rule. An unset field matches every pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct PodMatcher {
    /// Their namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Pattern>,
    /// Their name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Pattern>,
    /// Labels that they have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The controlling stateful set's name. Unlike the pod name pattern `web-*`, it separates the
    /// pods of `web` from those of `web-front`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Pattern>,
    /// Their ordinals: the label `apps.kubernetes.io/pod-index`, or the number at the end of the
    /// name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ordinals: Vec<u64>,
    /// Their revision in the label `controller-revision-hash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Pattern>,
    /// An image of one of their containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Pattern>,
    /// Limits the rule to the first pods with each name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u32>,
}

impl PodMatcher {
    setters! {
        /// Selects pods of this namespace.
        namespace: into Pattern,
        /// Selects pods with this name.
        name: into Pattern,
        /// Selects pods with these labels.
        labels: pairs String => String,
        /// Selects pods of this stateful set.
        set: into Pattern,
        /// Selects pods with these ordinals.
        ordinals: each u64,
        /// Selects pods of this revision.
        revision: into Pattern,
        /// Selects pods with this image.
        image: into Pattern,
        /// Selects only the first pods with each name.
        first: into Option<u32>,
    }

    /// Reports whether the rule matches a pod, the `nth` with its name, counted from 1.
    pub fn matches(&self, pod: &Value, nth: u32) -> bool {
        let metadata = MetadataRef(pod.get("metadata"));
        let fits = |pattern: &Option<Pattern>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(text))
        };
        let revision = metadata.label("controller-revision-hash");
        fits(&self.namespace, metadata.namespace())
            && fits(&self.name, metadata.name())
            && (self.set.is_none() || set(metadata).is_some_and(|name| fits(&self.set, name)))
            && fits(&self.revision, revision.unwrap_or_default())
            && self
                .labels
                .iter()
                .all(|(key, value)| metadata.label(key) == Some(value))
            && (self.ordinals.is_empty()
                || ordinal(metadata).is_some_and(|ordinal| self.ordinals.contains(&ordinal)))
            && (self.image.is_none() || images(pod).any(|image| fits(&self.image, image)))
            && self.first.is_none_or(|first| nth <= first)
    }
}

/// Returns the name of the stateful set that controls an object.
fn set(metadata: MetadataRef<'_>) -> Option<&str> {
    let owners = metadata.0?.get("ownerReferences")?.as_array()?;
    let controls = |owner: &&Value| owner["controller"] == true && owner["kind"] == "StatefulSet";
    owners.iter().find(controls)?.get("name")?.as_str()
}

fn ordinal(metadata: MetadataRef<'_>) -> Option<u64> {
    let label = metadata.label("apps.kubernetes.io/pod-index");
    let name = || metadata.name().rsplit_once('-').map(|(_, ordinal)| ordinal);
    label.or_else(name)?.parse().ok()
}

fn images(pod: &Value) -> impl Iterator<Item = &str> {
    ["/spec/containers", "/spec/initContainers"]
        .into_iter()
        .filter_map(|pointer| pod.pointer(pointer)?.as_array())
        .flatten()
        .filter_map(|container| container.get("image")?.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn star_matches_any_text() {
        for (pattern, text, matches) in [
            ("web-*", "web-0", true),
            ("web-*", "db-0", false),
            ("*:bad", "registry/app:bad", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("web-0", "web-0", true),
            ("web-0", "web-00", false),
            ("*", "", true),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(
                Pattern::new(pattern).matches(text),
                matches,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn set_matches_the_controller_not_the_pod_name() {
        let pod = |owner: &str, controls: bool| {
            json!({"metadata": {"name": "web-front-0", "ownerReferences": [
                {"kind": "StatefulSet", "name": owner, "controller": controls},
            ]}})
        };
        let matcher = |set: &str| PodMatcher {
            set: Some(set.into()),
            ..PodMatcher::default()
        };
        assert!(matcher("web-front").matches(&pod("web-front", true), 1));
        assert!(!matcher("web").matches(&pod("web-front", true), 1));
        assert!(!matcher("web").matches(&pod("web", false), 1));
        assert!(!matcher("web").matches(&json!({"metadata": {"name": "web-0"}}), 1));
    }

    #[test]
    fn matcher_requires_every_field_to_match() {
        let pod = json!({
            "metadata": {
                "namespace": "default",
                "name": "web-2",
                "labels": {"app": "web", "controller-revision-hash": "web-abc"},
            },
            "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
        });
        let matcher: PodMatcher = serde_json::from_value(json!({
            "namespace": "def*",
            "name": "web-*",
            "labels": {"app": "web"},
            "ordinals": [1, 2],
            "revision": "*-abc",
            "image": "nginx:*",
            "first": 1,
        }))
        .unwrap();
        assert!(matcher.matches(&pod, 1));
        assert!(!matcher.matches(&pod, 2));
        let mut other = pod.clone();
        other["metadata"]["name"] = json!("web-3");
        assert!(!matcher.matches(&other, 1));
        other = pod.clone();
        other["metadata"]["labels"]["controller-revision-hash"] = json!("web-def");
        assert!(!matcher.matches(&other, 1));
        assert!(PodMatcher::default().matches(&other, 99));
    }
}
