//! Resource paths, split by their form alone: the server may lack the resource.
//!
//! Upstream: `RequestInfoFactory.NewRequestInfo`.

use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::Key;

/// Returns the key of the built-in object that a URL's path names, itself or by a subresource.
pub fn key_of(path: &str) -> Option<Key> {
    let path = path.split('?').next().unwrap_or_default();
    let found = ResourcePath::parse(path).filter(|found| !found.name.is_empty())?;
    let kind = kinds::by_resource(found.group, found.version, found.plural)?;
    let namespace = if kind.namespaced { found.namespace } else { "" };
    Some(Key::new(kind, namespace, found.name))
}

/// The parts of a path below `/api/VERSION` or `/apis/GROUP/VERSION`; absent ones are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    /// A legacy verb before the resource: `watch` or `proxy`.
    pub(crate) verb: &'a str,
    /// The namespace, also of a namespace itself.
    pub(crate) namespace: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) name: &'a str,
    pub(crate) subresource: &'a str,
    /// True if segments follow the subresource.
    pub(crate) has_more: bool,
    /// True if a segment is empty.
    pub(crate) has_gap: bool,
}

impl<'a> ResourcePath<'a> {
    /// Splits a path; `None` if it is none of resources or of a group version.
    pub(crate) fn parse(path: &'a str) -> Option<Self> {
        let mut segments = path.trim_matches('/').split('/');
        let group = match segments.next()? {
            "api" => "",
            "apis" => segments.next()?,
            _ => return None,
        };
        let mut found = Self {
            group,
            version: segments.next()?,
            has_gap: path.contains("//"),
            ..Self::default()
        };
        let parts: Vec<&str> = segments.collect();
        let mut parts = parts.as_slice();
        if let ["watch" | "proxy", rest @ ..] = parts
            && !rest.is_empty()
        {
            (found.verb, parts) = (parts[0], rest);
        }
        if let ["namespaces", name, rest @ ..] = parts {
            found.namespace = name;
            // Those of a namespace itself are its subresources.
            if !matches!(rest, [] | ["status" | "finalize", ..]) {
                parts = rest;
            }
        }
        let part = |i: usize| parts.get(i).copied().unwrap_or_default();
        (found.plural, found.name, found.subresource) = (part(0), part(1), part(2));
        found.has_more = parts.len() > 3;
        Some(found)
    }
}
