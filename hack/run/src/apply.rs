//! Creates the objects of a manifest through the API.

use std::{collections::BTreeMap, error::Error};

use anyhow::Context as _;
use http::{HeaderMap, Request, StatusCode, header};
use kube::{Client, client::Body, core::Status};
use serde_json::Value;

use crate::{
    culprit,
    manifest::{Document, one_line},
    world::Key,
};

/// Default namespace, as with kubectl.
const DEFAULT_NAMESPACE: &str = "default";

/// Status code for an undecodable body.
const UNREADABLE: u16 = 400;

/// Path and scope of a kind on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Resource {
    plural: String,
    namespaced: bool,
}

/// Creates objects; requests the kinds of each API version once.
pub(crate) struct Applier {
    client: Client,
    served: BTreeMap<String, BTreeMap<String, Resource>>,
    warnings: Vec<String>,
}

/// Result of a POST.
struct Answer {
    /// The created object, or the error.
    outcome: Result<Value, Box<Status>>,
    /// Warnings of the server.
    warnings: Vec<String>,
}

impl Applier {
    /// Creates an applier for a server.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            served: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }

    /// Warnings of the server since the last call: one line each, with file and object.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Creates one object; returns its key if it is a StatefulSet. Warnings are kept for
    /// [`Applier::take_warnings`], even if it is rejected.
    ///
    /// # Errors
    /// One line with file, object, field and reason.
    pub(crate) async fn create(&mut self, document: &Document) -> anyhow::Result<Option<Key>> {
        let resource = self.resource(document).await?;
        let path = collection_path(document, &resource);
        let Answer { outcome, warnings } = self.post(document, &path, &document.value, "").await?;
        let lines = warnings.iter().map(|text| document.problem("", text));
        self.warnings.extend(lines.map(|line| line.to_string()));
        match outcome {
            Ok(created) => Ok(set_key(document, &created)),
            Err(status) => {
                let (mut field, reason) = explain(&status);
                if field.is_empty() && status.code == UNREADABLE {
                    field = self.culprit(document, &path, &status).await?;
                }
                Err(document.problem(&field, &reason).into())
            }
        }
    }

    /// Posts a body. Unknown fields are warnings, not errors, so that users can try manifests for
    /// newer versions.
    async fn post(
        &self,
        document: &Document,
        path: &str,
        body: &Value,
        parameters: &str,
    ) -> anyhow::Result<Answer> {
        let body = serde_json::to_vec(body).context("encode the object")?;
        let target = format!("{path}?fieldManager=run&fieldValidation=Warn{parameters}");
        let request = Request::post(target)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body))
            .map_err(|error| document.problem("metadata", &error.to_string()))?;
        let problem = |error: &dyn Error| document.problem("", &one_line(&error.to_string()));
        let reply = self.client.send(request).await;
        let reply = reply.map_err(|error| problem(&error))?;
        let (code, warnings) = (reply.status(), warnings(reply.headers()));
        let body = reply.into_body().collect_bytes().await;
        let body = body.map_err(|error| problem(&error))?;
        let outcome = if code.is_success() {
            Ok(serde_json::from_slice(&body).map_err(|error| problem(&error))?)
        } else {
            Err(refusal(code, &body))
        };
        Ok(Answer { outcome, warnings })
    }

    /// The undecodable field, if omitting a single field changes the response.
    async fn culprit(
        &self,
        document: &Document,
        path: &str,
        refusal: &Status,
    ) -> anyhow::Result<String> {
        for leaf in culprit::leaves(&document.value) {
            let body = culprit::without(&document.value, &leaf);
            let answer = self.post(document, path, &body, "&dryRun=All").await?;
            let outcome = answer.outcome;
            if outcome.map_or_else(|status| status.message != refusal.message, |_| true) {
                return Ok(leaf.to_string());
            }
        }
        Ok(String::new())
    }

    /// Returns path and scope of the object's kind.
    async fn resource(&mut self, document: &Document) -> anyhow::Result<Resource> {
        let version = &document.api_version;
        if !self.served.contains_key(version) {
            let request = Request::get(version_path(version))
                .body(Vec::new())
                .map_err(|error| document.problem("apiVersion", &error.to_string()))?;
            let kinds = match self.client.request::<Value>(request).await {
                Ok(list) => kinds(&list),
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    let reason = format!("the server has no {version}");
                    return Err(document.problem("apiVersion", &reason).into());
                }
                Err(error) => {
                    return Err(error).context(format!("get the kinds of {version}"));
                }
            };
            self.served.insert(version.clone(), kinds);
        }
        let kinds = self.served.get(version);
        kinds
            .and_then(|kinds| kinds.get(&document.kind))
            .cloned()
            .ok_or_else(|| {
                let reason = format!("the server has no {} in {version}", document.kind);
                document.problem("kind", &reason).into()
            })
    }
}

/// `/api/v1`, `/apis/apps/v1`.
fn version_path(version: &str) -> String {
    if version.contains('/') {
        format!("/apis/{version}")
    } else {
        format!("/api/{version}")
    }
}

/// Path of the POST.
fn collection_path(document: &Document, resource: &Resource) -> String {
    let base = version_path(&document.api_version);
    if resource.namespaced {
        let namespace = document.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        format!("{base}/namespaces/{namespace}/{}", resource.plural)
    } else {
        format!("{base}/{}", resource.plural)
    }
}

/// The key of a created set; the server may have completed its name.
fn set_key(document: &Document, created: &Value) -> Option<Key> {
    if document.kind != "StatefulSet" || document.api_version != "apps/v1" {
        return None;
    }
    let namespace = created.pointer("/metadata/namespace")?.as_str()?;
    Some(Key::new(
        namespace,
        created.pointer("/metadata/name")?.as_str()?,
    ))
}

/// The kinds of an `APIResourceList`, without subresources.
fn kinds(list: &Value) -> BTreeMap<String, Resource> {
    let resources = list.get("resources").and_then(Value::as_array);
    resources
        .into_iter()
        .flatten()
        .filter_map(|resource| {
            let plural = resource.get("name")?.as_str()?;
            let kind = resource.get("kind")?.as_str()?;
            let namespaced = resource.get("namespaced")?.as_bool()?;
            let whole = Resource {
                plural: plural.to_owned(),
                namespaced,
            };
            (!plural.contains('/')).then(|| (kind.to_owned(), whole))
        })
        .collect()
}

/// Warnings in the headers of a response.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(header::WARNING).iter();
    lines
        .map(|line| {
            // `299 - "text"`: code, agent, and the text, quoted as in JSON.
            let line = String::from_utf8_lossy(line.as_bytes());
            let text = line.splitn(3, ' ').last().unwrap_or_default();
            serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())
        })
        .collect()
}

/// Parses an error body, which may not be a `Status` if a proxy responds.
fn refusal(code: StatusCode, body: &[u8]) -> Box<Status> {
    let status = serde_json::from_slice(body).unwrap_or_else(|_| {
        let text = one_line(&String::from_utf8_lossy(body));
        Status::failure(&format!("{code} {text}"), "Unknown").with_code(code.as_u16())
    });
    Box::new(status)
}

/// Field and reason of an error. Several causes are joined; the field is the first one's.
fn explain(status: &Status) -> (String, String) {
    let causes = status
        .details
        .as_ref()
        .map_or(&[][..], |details| &details.causes);
    let Some((first, others)) = causes.split_first() else {
        return (String::new(), status.message.clone());
    };
    let others = others
        .iter()
        .map(|cause| format!("; {}: {}", cause.field, cause.message));
    let reason = std::iter::once(first.message.clone())
        .chain(others)
        .collect();
    (first.field.clone(), reason)
}

#[cfg(test)]
mod tests;
