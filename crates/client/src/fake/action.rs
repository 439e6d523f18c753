//! A recorded call to the API.

use std::fmt;

use http::{Method, header, request::Parts};
use serde::Deserialize;
use serde_json::Value;

use crate::rest::PatchType;

/// The verb of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Lists a collection.
    List,
    /// Watches a collection.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Patches an object.
    Patch,
    /// Deletes an object.
    Delete,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        })
    }
}

/// A call to the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The verb.
    pub verb: Verb,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name.
    pub resource: String,
    /// For example `status`; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for all namespaces.
    pub namespace: String,
    /// The name, taken from the body for a create; empty for a collection.
    pub name: String,
    /// The body as sent.
    pub body: String,
    /// The type of a patch.
    pub patch_type: Option<PatchType>,
}

impl Action {
    /// Returns the body as JSON; null if there is none.
    pub fn json(&self) -> Value {
        if self.body.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&self.body).expect("bodies are JSON")
        }
    }

    /// Returns the resource as the tracker's messages name it: `pods`, `statefulsets.apps`.
    pub(super) fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    /// Parses a request into an action.
    pub(super) fn from_request(parts: &Parts, body: &[u8]) -> Result<Self, tower::BoxError> {
        let mut segments: Vec<_> = parts
            .uri
            .path()
            .trim_start_matches('/')
            .split('/')
            .collect();
        let group = match segments.first() {
            Some(&"api") => segments.drain(..2.min(segments.len())).next().map(|_| ""),
            Some(&"apis") => segments.drain(..3.min(segments.len())).nth(1),
            _ => None,
        };
        let Some(group) = group else {
            return Err(unknown(parts));
        };
        let mut namespace = "";
        if segments.first() == Some(&"namespaces") && segments.len() > 2 {
            namespace = segments[1];
            segments.drain(..2);
        }
        let [resource, rest @ ..] = segments.as_slice() else {
            return Err(unknown(parts));
        };
        let (path_name, subresource) = match rest {
            [] => ("", ""),
            [name] => (*name, ""),
            [name, subresource] => (*name, *subresource),
            _ => return Err(unknown(parts)),
        };
        let verb = verb(parts, path_name).ok_or_else(|| unknown(parts))?;
        let body = String::from_utf8(body.to_vec())?;
        let content_type = parts.headers.get(header::CONTENT_TYPE);
        let patch_type = [PatchType::Strategic, PatchType::Merge]
            .into_iter()
            .find(|kind| content_type.is_some_and(|value| value == kind.content_type()));
        let mut action = Self {
            verb,
            group: group.to_owned(),
            resource: (*resource).to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: path_name.to_owned(),
            body,
            patch_type,
        };
        if verb == Verb::Create {
            let name = action.json()["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            action.name = name;
        }
        Ok(action)
    }
}

fn verb(parts: &Parts, name: &str) -> Option<Verb> {
    let watch = parts
        .uri
        .query()
        .is_some_and(|query| query.contains("watch=true"));
    Some(match parts.method {
        Method::GET if watch => Verb::Watch,
        Method::GET if name.is_empty() => Verb::List,
        Method::GET => Verb::Get,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => return None,
    })
}

fn unknown(parts: &Parts) -> tower::BoxError {
    format!("the fake API has no {} {}", parts.method, parts.uri).into()
}
