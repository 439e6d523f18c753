//! Authorization attributes of a request. They depend only on method and path, even if the server
//! lacks the resource.

use std::borrow::Cow;

use http::Method;

use kube_test_control_plane_api::query::Query;

use crate::resource_path::ResourcePath;

/// A verb and its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// The verb, such as `list`; for paths the method in lower case.
    pub verb: Cow<'a, str>,
    /// The subject.
    pub subject: Subject<'a>,
}

/// Subject of a verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// Objects.
    Resource(Resource<'a>),
    /// A non-resource path.
    Path(Cow<'a, str>),
}

/// A resource or one of its objects; empty fields are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource<'a> {
    pub group: Cow<'a, str>,
    pub plural: Cow<'a, str>,
    pub subresource: Cow<'a, str>,
    pub namespace: Cow<'a, str>,
    pub name: Cow<'a, str>,
}

impl<'a> Attributes<'a> {
    /// Returns the attributes of a request.
    pub(crate) fn of(method: &'a Method, path: &'a str, query: &'a Query) -> Self {
        Self::of_resource(method, path, query).unwrap_or_else(|| Self {
            verb: method.as_str().to_ascii_lowercase().into(),
            subject: Subject::Path(path.into()),
        })
    }

    fn of_resource(method: &Method, path: &'a str, query: &'a Query) -> Option<Self> {
        let path = ResourcePath::parse(path).filter(|path| !path.plural.is_empty())?;
        let mut verb = match method.as_str() {
            "POST" => "create",
            "GET" | "HEAD" => "get",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ => "",
        };
        if !path.verb.is_empty() {
            verb = path.verb;
        }
        let mut name = path.name;
        if name.is_empty() && verb == "get" {
            verb = if query.flag("watch") { "watch" } else { "list" };
            name = query
                .get("fieldSelector")
                .and_then(named_by)
                .unwrap_or_default();
        } else if name.is_empty() && verb == "delete" {
            verb = "deletecollection";
        }
        Some(Self {
            verb: verb.to_owned().into(),
            subject: Subject::Resource(Resource {
                group: path.group.into(),
                plural: path.plural.into(),
                subresource: path.subresource.into(),
                namespace: path.namespace.into(),
                name: name.into(),
            }),
        })
    }

    /// Creates the attributes of a verb on a resource.
    pub(crate) fn resource(verb: impl Into<Cow<'a, str>>, resource: Resource<'a>) -> Self {
        Self {
            verb: verb.into(),
            subject: Subject::Resource(resource),
        }
    }

    /// Returns the namespace; empty for paths and at the cluster scope.
    pub(crate) fn namespace(&self) -> &str {
        match &self.subject {
            Subject::Resource(resource) => &resource.namespace,
            Subject::Path(_) => "",
        }
    }

    /// Returns the attributes with another verb.
    pub(crate) fn with_verb(&self, verb: impl Into<Cow<'a, str>>) -> Self {
        Self {
            verb: verb.into(),
            subject: self.subject.clone(),
        }
    }
}

/// Returns the name that a field selector requires.
fn named_by(selector: &str) -> Option<&str> {
    let name = selector.split(',').find_map(|term| {
        let value = term.strip_prefix("metadata.name=")?;
        Some(value.strip_prefix('=').unwrap_or(value))
    })?;
    let is_segment = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '%']);
    is_segment.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(method: &str, path: &str, query: &str) -> String {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let query = Query::parse(query);
        let attributes = Attributes::of(&method, path, &query);
        match &attributes.subject {
            Subject::Path(path) => format!("{} path {path}", attributes.verb),
            Subject::Resource(r) => format!(
                "{} {}/{}/{} {}/{}",
                attributes.verb, r.group, r.plural, r.subresource, r.namespace, r.name
            ),
        }
    }

    #[test]
    fn attributes_follow_from_method_and_path() {
        for (method, path, query, expected) in [
            ("GET", "/", "", "get path /"),
            ("GET", "/api", "", "get path /api"),
            ("GET", "/api/v1/", "", "get path /api/v1/"),
            ("GET", "/apis/apps/v1", "", "get path /apis/apps/v1"),
            ("OPTIONS", "/metrics/slis", "", "options path /metrics/slis"),
            ("GET", "/api/v1/pods", "", "list /pods/ /"),
            ("GET", "/api/v1/pods", "watch=1", "watch /pods/ /"),
            ("GET", "/api/v1/watch/pods", "", "watch /pods/ /"),
            ("GET", "/api/v1/namespaces", "", "list /namespaces/ /"),
            ("GET", "/api/v1/namespaces/a", "", "get /namespaces/ a/a"),
            (
                "PUT",
                "/api/v1/namespaces/a/finalize",
                "",
                "update /namespaces/finalize a/a",
            ),
            ("POST", "/api/v1/namespaces/a/pods", "", "create /pods/ a/"),
            (
                "DELETE",
                "/api/v1/namespaces/a/pods",
                "",
                "deletecollection /pods/ a/",
            ),
            (
                "DELETE",
                "/api/v1/namespaces/a/pods/p",
                "",
                "delete /pods/ a/p",
            ),
            ("HEAD", "/api/v1/namespaces/a/pods/p", "", "get /pods/ a/p"),
            ("OPTIONS", "/api/v1/namespaces/a/pods/p", "", " /pods/ a/p"),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/statefulsets/w/status/",
                "",
                "patch apps/statefulsets/status a/w",
            ),
            (
                "GET",
                "/apis/no.such/v9/things/x/y/z",
                "",
                "get no.such/things/y /x",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/pods",
                "fieldSelector=metadata.name%3Dp",
                "list /pods/ a/p",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/pods",
                "watch=true&fieldSelector=status.phase%3DRunning,metadata.name%3D%3Dp",
                "watch /pods/ a/p",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/pods",
                "fieldSelector=metadata.name%21%3Dp",
                "list /pods/ a/",
            ),
        ] {
            assert_eq!(
                line(method, path, query),
                expected,
                "{method} {path}?{query}"
            );
        }
    }
}
