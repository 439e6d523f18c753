//! Request attributes for fault rules and the audit log, from method, path and headers. They do not
//! require that the server has the resource.

use http::Method;
use serde_json::Value;

use kube_test_control_plane_api::decode::protobuf;
use kube_test_control_plane_api::kinds::{self, Kind, Verb};
use kube_test_control_plane_api::query::Query;

use crate::resource_path::ResourcePath;

/// Attributes of a request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RequestFacts {
    /// The verb; `None` for non-resource requests.
    pub verb: Option<Verb>,
    /// The path.
    pub path: String,
    /// The raw query string.
    pub query: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The resource; empty for non-resource requests.
    pub resource: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for all and for cluster-scoped resources.
    pub namespace: String,
    /// The object's name; for a create the name in its body, after that was read. Empty for
    /// collections.
    pub name: String,
    /// The user's name.
    pub user: String,
    /// The `User-Agent` header.
    pub user_agent: String,
}

impl RequestFacts {
    /// Returns the attributes from method, path and query; user, agent and a name in the body are
    /// set later.
    pub fn new(method: &Method, path: &str, query: &str) -> Self {
        let mut facts = Self {
            path: path.to_owned(),
            query: query.to_owned(),
            ..Self::default()
        };
        let Some(found) = ResourcePath::parse(path) else {
            return facts;
        };
        found.group.clone_into(&mut facts.group);
        found.version.clone_into(&mut facts.version);
        if found.plural.is_empty() {
            return facts;
        }
        found.plural.clone_into(&mut facts.resource);
        found.name.clone_into(&mut facts.name);
        found.subresource.clone_into(&mut facts.subresource);
        if found.plural != "namespaces" {
            found.namespace.clone_into(&mut facts.namespace);
        }
        facts.verb = match verb(method, &facts.name, query) {
            Some(Verb::Get | Verb::List) if found.verb == "watch" => Some(Verb::Watch),
            verb => verb,
        };
        facts
    }

    /// Reports whether this is a resource request.
    pub fn is_resource(&self) -> bool {
        !self.resource.is_empty()
    }

    /// Returns a row of the resource for messages.
    pub(crate) fn kind(&self) -> Kind {
        let known = kinds::by_resource(&self.group, &self.version, &self.resource);
        let kind = known.map_or(&self.resource, |known| &known.kind);
        Kind::plain(&self.group, &self.version, kind, &self.resource)
    }

    /// Sets a create's name from its body.
    pub(crate) fn name_from(&mut self, body: &[u8]) {
        if self.verb != Some(Verb::Create) || !self.name.is_empty() {
            return;
        }
        if let Some(metadata) = protobuf::metadata(body) {
            let name = metadata.get("name").and_then(Value::as_str);
            name.unwrap_or_default().clone_into(&mut self.name);
        } else if let Ok(body) = serde_json::from_slice::<NameOnly>(body) {
            self.name = body.metadata.name;
        }
    }
}

/// The part of a body with the name of the created object.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct NameOnly {
    metadata: MetadataNameOnly,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct MetadataNameOnly {
    name: String,
}

/// Returns the labels of the object in a JSON or protobuf body.
pub(crate) fn body_labels(body: &[u8]) -> Value {
    let metadata = protobuf::metadata(body).or_else(|| {
        let mut value: Value = serde_json::from_slice(body).ok()?;
        value.get_mut("metadata").map(Value::take)
    });
    let mut metadata = metadata.unwrap_or_default();
    metadata
        .get_mut("labels")
        .map(Value::take)
        .unwrap_or_default()
}

fn verb(method: &Method, name: &str, query: &str) -> Option<Verb> {
    Some(match (method.as_str(), name.is_empty()) {
        ("GET" | "HEAD", false) => Verb::Get,
        ("GET" | "HEAD", true) if Query::parse(query).flag("watch") => Verb::Watch,
        ("GET" | "HEAD", true) => Verb::List,
        ("POST", _) => Verb::Create,
        ("PUT", _) => Verb::Update,
        ("PATCH", _) => Verb::Patch,
        ("DELETE", false) => Verb::Delete,
        ("DELETE", true) => Verb::DeleteCollection,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(method: &Method, path: &str, query: &str) -> String {
        let f = RequestFacts::new(method, path, query);
        let verb = f.verb.map_or("-", Verb::name);
        format!(
            "{verb} {}/{}/{} {}/{}",
            f.group, f.resource, f.subresource, f.namespace, f.name
        )
    }

    #[test]
    fn facts_follow_from_method_and_path() {
        let sets = "/apis/apps/v1/namespaces/x/statefulsets";
        assert_eq!(facts(&Method::GET, sets, ""), "list apps/statefulsets/ x/");
        assert_eq!(
            facts(&Method::GET, sets, "watch=1"),
            "watch apps/statefulsets/ x/"
        );
        let old = "/api/v1/watch/namespaces/x/pods";
        assert_eq!(facts(&Method::GET, old, ""), "watch /pods/ x/");
        let one = format!("{old}/web-0");
        assert_eq!(facts(&Method::GET, &one, ""), "watch /pods/ x/web-0");
        assert_eq!(
            facts(&Method::PUT, &format!("{sets}/web/status"), ""),
            "update apps/statefulsets/status x/web"
        );
        assert_eq!(
            facts(&Method::DELETE, "/api/v1/nodes/", ""),
            "deletecollection /nodes/ /"
        );
        assert_eq!(
            facts(&Method::GET, "/api/v1/namespaces/x", ""),
            "get /namespaces/ /x"
        );
        assert_eq!(
            facts(&Method::PUT, "/api/v1/namespaces/x/finalize", ""),
            "update /namespaces/finalize /x"
        );
        for path in ["/", "/healthz", "/api", "/apis/apps/v1", "/openapi/v3"] {
            assert_eq!(facts(&Method::GET, path, "").split(' ').next(), Some("-"));
        }
    }

    #[test]
    fn create_takes_its_name_from_the_body() {
        let mut facts = RequestFacts::new(&Method::POST, "/api/v1/namespaces/x/pods", "");
        facts.name_from(br#"{"metadata":{"name":"web-0"}}"#);
        assert_eq!(facts.name, "web-0");
    }
}
