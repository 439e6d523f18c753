//! Request matchers of fault rules.

use std::collections::BTreeMap;

use kube_test_control_plane_api::kinds::Verb;
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::setters;
use serde::{Deserialize, Serialize};

use super::facts::{RequestFacts, body_labels};

/// Prefix of the actors' user agents.
pub const ACTOR_AGENT_PREFIX: &str = "test-control-plane/";

/// Selects the requests of a rule. An unset field matches everything, with two exceptions: only
/// resource requests match unless a path is set, and the control plane's own actors match only if
/// they are included or a user agent is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct RequestMatcher {
    /// One of these verbs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<Verb>,
    /// This API group; empty for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// One of these resources, such as `pods`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// This subresource; an empty one means the object itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// This namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// This object; creates match by the name in their body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// This user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Clients with this user agent prefix; it may match actors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// These query parameters, with these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// These labels in the object in the body (JSON bodies only).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub body_labels: BTreeMap<String, String>,
    /// Paths with this prefix, including non-resource requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Also the requests of the control plane's own actors.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub actors: bool,
}

impl RequestMatcher {
    /// Matches every client request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Matches every write.
    pub fn writes() -> Self {
        Self::any().verbs(&[
            Verb::Create,
            Verb::Update,
            Verb::Patch,
            Verb::Delete,
            Verb::DeleteCollection,
        ])
    }

    /// Adds a verb to the matched verbs.
    #[must_use]
    pub fn verb(self, verb: Verb) -> Self {
        self.verbs(&[verb])
    }

    /// Adds verbs to the matched verbs.
    #[must_use]
    pub fn verbs(mut self, verbs: &[Verb]) -> Self {
        self.verbs.extend_from_slice(verbs);
        self
    }

    setters! {
        /// Matches only this API group; empty for the core group.
        group: into String,
        /// Matches only this subresource; an empty one means the object itself.
        subresource: into String,
        /// Matches only this namespace.
        namespace: into String,
        /// Matches only this object; creates match by the name in their body.
        name: into String,
        /// Matches only this user.
        user: into String,
        /// Matches only clients with this user agent prefix; it may match actors.
        user_agent: into String,
        /// Matches only paths with this prefix, including non-resource requests.
        path: into String,
    }

    /// Adds a resource, such as `pods`, to the matched resources.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resources.push(resource.to_owned());
        self
    }

    /// Matches only requests with this query parameter and value.
    #[must_use]
    pub fn query(mut self, key: &str, value: &str) -> Self {
        self.query.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Matches only requests whose body is an object with this label.
    #[must_use]
    pub fn body_label(mut self, key: &str, value: &str) -> Self {
        self.body_labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Also matches the requests of the control plane's own actors.
    #[must_use]
    pub fn include_actors(mut self) -> Self {
        self.actors = true;
        self
    }

    /// Reports whether a request with this body matches.
    pub fn matches(&self, facts: &RequestFacts, body: &[u8]) -> bool {
        let equal = |wanted: &Option<String>, found: &str| is_wanted(wanted.as_ref(), found);
        let starts = |wanted: &Option<String>, found: &str| {
            wanted
                .as_deref()
                .is_none_or(|prefix| found.starts_with(prefix))
        };
        (facts.is_resource() || self.path.is_some())
            && (self.verbs.is_empty() || facts.verb.is_some_and(|v| self.verbs.contains(&v)))
            && (self.resources.is_empty() || self.resources.contains(&facts.resource))
            && equal(&self.group, &facts.group)
            && equal(&self.subresource, &facts.subresource)
            && equal(&self.namespace, &facts.namespace)
            && equal(&self.name, &facts.name)
            && equal(&self.user, &facts.user)
            && starts(&self.user_agent, &facts.user_agent)
            && starts(&self.path, &facts.path)
            && (self.actors
                || self.user_agent.is_some()
                || !facts.user_agent.starts_with(ACTOR_AGENT_PREFIX))
            && self.query_matches(&facts.query)
            && self.labels_match(body)
    }

    fn query_matches(&self, text: &str) -> bool {
        if self.query.is_empty() {
            return true;
        }
        let query = Query::parse(text);
        let same = |(key, value): (&String, &String)| query.get(key) == Some(value);
        self.query.iter().all(same)
    }

    fn labels_match(&self, body: &[u8]) -> bool {
        if self.body_labels.is_empty() {
            return true;
        }
        let labels = body_labels(body);
        let same = |(key, value): (&String, &String)| {
            labels.get(key).and_then(|v| v.as_str()) == Some(value)
        };
        self.body_labels.iter().all(same)
    }
}

/// Reports whether a text equals the expected one, if any.
pub(super) fn is_wanted(wanted: Option<&String>, found: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == found)
}
