//! Get and list.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use crate::kinds::{Kind, Trait};
use crate::object::Object;
use crate::query::Query;
use crate::reply::{self, Reply};
use crate::route::ResourceRequest;
use crate::selectors::Selection;
use crate::server::ApiServer;
use crate::status::{ApiError, ApiResult};
use crate::validation::FieldError;
use crate::write::{served_text, stored};

/// How long a read waits for a revision that is still to come.
const FUTURE_REVISION_WAIT: Duration = Duration::from_secs(3);

const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a \
     consistent list result. You can start a new list without the continue parameter, or use the \
     continue token in this response to retrieve the remainder of the results. Continuing with \
     the provided token results in an inconsistent list - objects that were created, modified, or \
     deleted between the time the first chunk was returned and now may show up in the list.";

/// Which state of a collection is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The newest.
    Newest,
    /// Any; the newest is one.
    Any,
    /// Not before a revision.
    NotOlderThan(u64),
    /// Exactly a revision.
    Exactly(u64),
}

/// The place where a list was cut.
struct Position {
    revision: Option<u64>,
    after: (String, String),
}

impl ApiServer {
    /// Reads one object.
    pub(crate) async fn get(&self, request: &ResourceRequest, query: &Query) -> ApiResult<Reply> {
        if let Some(text) = query.get("resourceVersion")
            && let Ok(wanted) = text.parse::<u64>()
        {
            self.wait_for_revision(wanted, query).await?;
        }
        let kind = stored(request.kind);
        let object = self
            .store()
            .get(&Self::key(request))
            .ok_or_else(|| ApiError::not_found(kind, &request.name))?;
        Ok(reply::json_text(
            StatusCode::OK,
            served_text(request.kind, &object),
        ))
    }

    /// Waits until a revision is there, or answers that it is too large.
    pub(crate) async fn wait_for_revision(&self, wanted: u64, query: &Query) -> ApiResult<()> {
        if wanted <= self.store().revision() {
            return Ok(());
        }
        let limit = query
            .integer("timeoutSeconds")?
            .and_then(|s| u64::try_from(s).ok());
        let wait = limit.map_or(FUTURE_REVISION_WAIT, Duration::from_secs);
        let mut revisions = self.store().subscribe();
        let reached = revisions.wait_for(|revision| *revision >= wanted);
        match tokio::time::timeout(wait.min(FUTURE_REVISION_WAIT), reached).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(ApiError::too_large_resource_version(
                wanted,
                self.store().revision(),
            )),
        }
    }

    /// Reads a collection.
    pub(crate) async fn list(&self, request: &ResourceRequest, query: &Query) -> ApiResult<Reply> {
        if query.get("sendInitialEvents").is_some() {
            return Err(forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        let selection = Selection::parse(request.kind, query)?;
        let at = wanted_state(query)?;
        if let At::NotOlderThan(wanted) | At::Exactly(wanted) = at {
            self.wait_for_revision(wanted, query).await?;
        }
        let limit = match query.integer("limit")? {
            Some(limit) if limit > 0 && at != At::Any => usize::try_from(limit).ok(),
            _ => None,
        };
        let text = self.list_page(request, &selection, at, limit, query.get("continue"))?;
        Ok(reply::json_text(StatusCode::OK, text))
    }

    fn list_page(
        &self,
        request: &ResourceRequest,
        selection: &Selection,
        at: At,
        limit: Option<usize>,
        token: Option<&str>,
    ) -> ApiResult<Bytes> {
        let storage = request.kind.storage;
        let position = token.map(|token| decode_token(token, at)).transpose()?;
        let revision = match (&position, at) {
            (Some(position), _) => position.revision,
            (None, At::Exactly(revision)) => Some(revision),
            _ => None,
        };
        let (revision, mut objects) = match revision {
            None => self.store().list(storage, &request.namespace),
            Some(revision) => {
                let listed = self.store().list_at(storage, &request.namespace, revision);
                let objects = listed.map_err(|_| expired(position.as_ref()))?;
                (revision, objects)
            }
        };
        if let Some(position) = &position {
            let after = (position.after.0.as_str(), position.after.1.as_str());
            objects.retain(|o| (&*o.key.namespace, &*o.key.name) > after);
        }
        if !selection.is_everything() {
            objects.retain(|object| selection.matches(object));
        }
        let limit = limit.unwrap_or(usize::MAX);
        let rest = objects.len().saturating_sub(limit);
        objects.truncate(limit);
        let token = objects
            .last()
            .filter(|_| rest > 0)
            .map(|last| encode_token(Some(revision), &last.key.namespace, &last.key.name));
        let remaining = (rest > 0 && selection.is_everything()).then_some(rest);
        Ok(Self::list_text(
            request.kind,
            &objects,
            revision,
            token,
            remaining,
        ))
    }

    /// The text of a list.
    pub(crate) fn list_text(
        kind: &Kind,
        objects: &[Arc<Object>],
        revision: u64,
        token: Option<String>,
        remaining: Option<usize>,
    ) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let Some(token) = token {
            metadata["continue"] = json!(token);
        }
        if let Some(remaining) = remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        let size: usize = objects.iter().map(|o| o.text().len()).sum();
        let mut text = Vec::with_capacity(size + 256);
        let head = format!(
            "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
            kind.kind,
            kind.api_version()
        );
        text.extend_from_slice(head.as_bytes());
        for (i, object) in objects.iter().enumerate() {
            if i > 0 {
                text.push(b',');
            }
            if kind.has(Trait::View) {
                text.extend_from_slice(&served_text(kind, object));
            } else {
                text.push(b'{');
                text.extend_from_slice(object.item_text());
            }
        }
        text.extend_from_slice(b"]}");
        text.into()
    }
}

/// 422 on `ListOptions`.
pub(crate) fn forbidden(field: &str, detail: &str) -> ApiError {
    ApiError::invalid_options("ListOptions", FieldError::forbidden(field, detail))
}

fn wanted_state(query: &Query) -> ApiResult<At> {
    let text = query.get("resourceVersion");
    let how = query.get("resourceVersionMatch");
    let field = "resourceVersionMatch";
    if how.is_some() && text.is_none() {
        if query.get("continue").is_some() {
            return Err(forbidden(
                field,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        return Err(forbidden(
            field,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ));
    }
    if let Some(other) = how
        && other != "Exact"
        && other != "NotOlderThan"
    {
        let known = ["Exact", "NotOlderThan", ""];
        let error = FieldError::not_supported(field, &json!(other), &known);
        return Err(ApiError::invalid_options("ListOptions", error));
    }
    if how == Some("Exact") && text == Some("0") {
        return Err(forbidden(
            field,
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ));
    }
    let Some(text) = text else {
        return Ok(At::Newest);
    };
    let revision: u64 = text.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {text:?}: \
             strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })?;
    Ok(match (revision, how) {
        (0, _) => At::Any,
        (_, Some("Exact")) => At::Exactly(revision),
        _ => At::NotOlderThan(revision),
    })
}

fn expired(position: Option<&Position>) -> ApiError {
    match position {
        None => ApiError::expired("The resourceVersion for the provided list is too old."),
        Some(position) => ApiError {
            continue_token: Some(encode_token(None, &position.after.0, &position.after.1)),
            ..ApiError::expired(CONTINUE_TOO_OLD)
        },
    }
}

fn encode_token(revision: Option<u64>, namespace: &str, name: &str) -> String {
    let revision = revision.map_or(json!(-1), |r| json!(r));
    let token = json!({
        "v": "meta.k8s.io/v1",
        "rv": revision,
        "start": format!("{namespace}/{name}\u{0}"),
    });
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn decode_token(token: &str, at: At) -> ApiResult<Position> {
    if !matches!(at, At::Newest | At::Any) {
        return Err(ApiError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let bytes = URL_SAFE_NO_PAD
        .decode(token)
        .or_else(|_| URL_SAFE.decode(token));
    let value: Option<Value> = bytes.ok().and_then(|b| serde_json::from_slice(&b).ok());
    let position = value.as_ref().and_then(|value| {
        let start = value.get("start")?.as_str()?.trim_end_matches('\u{0}');
        let (namespace, name) = start.rsplit_once('/').unwrap_or(("", start));
        Some(Position {
            revision: value.get("rv")?.as_u64(),
            after: (namespace.to_owned(), name.to_owned()),
        })
    });
    position.ok_or_else(|| {
        ApiError::bad_request(format!(
            "continue key is not valid: {token:?} can't be decoded"
        ))
    })
}
