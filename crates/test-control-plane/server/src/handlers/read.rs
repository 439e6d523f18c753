//! Get and list.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use kube_test_control_plane_api::continue_token::Position;
use kube_test_control_plane_api::kinds::{Kind, Trait, stored};
use kube_test_control_plane_api::list_options::{ListOptions, parse_version_field};
use kube_test_control_plane_api::object::Object;
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::selectors::Selection;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_store::store::Collection;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::faults::ReadView;
use crate::reply::{self, Reply};
use crate::route::ResourceRequest;
use crate::state::Reads;
use crate::write::Earlier;
use crate::write::served_text;

/// Time for which a read waits for a future revision.
const FUTURE_REVISION_WAIT: Duration = Duration::from_secs(3);

const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a \
     consistent list result. You can start a new list without the continue parameter, or use the \
     continue token in this response to retrieve the remainder of the results. Continuing with \
     the provided token results in an inconsistent list - objects that were created, modified, or \
     deleted between the time the first chunk was returned and now may show up in the list.";

/// The requested state of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The newest state.
    Newest,
    /// Any state; the newest is used.
    Any,
    /// A state at least as new as a revision.
    NotOlderThan(u64),
    /// The state at a revision.
    Exactly(u64),
}

/// A page of a collection.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// Objects in the order of their keys.
    pub objects: Vec<Arc<Object>>,
    /// The revision of the page.
    revision: u64,
    /// Continue token, if there are more objects.
    token: Option<String>,
    /// Number of remaining objects, if reported.
    remaining: Option<usize>,
    /// The shard selector, if it was applied.
    shard_selector: Option<String>,
}

/// Reads one object.
pub(crate) async fn get(
    reads: &Reads,
    request: &ResourceRequest,
    query: &Query,
    read_view: &ReadView,
) -> ApiResult<Reply> {
    let mut horizon = None;
    if let Some(text) = query.get("resourceVersion") {
        let wanted = parse_version_field(text).map_err(ApiError::internal)?;
        horizon = wait_for_revision(reads, wanted, None, read_view).await?;
    }
    let kind = stored(&request.kind);
    let key = request.key();
    let object = match horizon {
        None => reads.store.get(&key),
        Some(revision) => {
            let all = Collection::new(&key.storage, &key.namespace);
            let from = all.starting_at(key.clone());
            let page = reads.store.page_at(&from, 1, revision);
            let mut found = page.map_err(|_| expired(None))?.objects;
            found.pop().filter(|object| object.key == key)
        }
    };
    let object = object.ok_or_else(|| ApiError::not_found(kind, &request.name))?;
    Ok(reply::json_text(
        StatusCode::OK,
        served_text(reads, &request.kind, &object, Earlier::Ignored).await?,
    ))
}

/// Waits until a revision is visible, or fails with "too large resource version". Returns the
/// newest visible revision, or `None` if it is unlimited.
pub(crate) async fn wait_for_revision(
    reads: &Reads,
    wanted: u64,
    timeout_seconds: Option<i64>,
    read_view: &ReadView,
) -> ApiResult<Option<u64>> {
    let limit = timeout_seconds.and_then(|s| u64::try_from(s).ok());
    let wait = limit.map_or(FUTURE_REVISION_WAIT, Duration::from_secs);
    let deadline = Instant::now() + wait.min(FUTURE_REVISION_WAIT);
    let mut revisions = reads.store.subscribe();
    let mut views = read_view.faults.watch_changes();
    loop {
        let newest = *revisions.borrow_and_update();
        let horizon = read_view.horizon(newest);
        let seen = horizon.unwrap_or(newest);
        if wanted <= seen {
            return Ok(horizon);
        }
        tokio::select! {
            biased;
            Ok(()) = revisions.changed() => {}
            Ok(()) = views.changed() => {}
            () = sleep_until(deadline) => {
                return Err(ApiError::too_large_resource_version(wanted, seen));
            }
        }
    }
}

/// Reads a collection.
pub(crate) async fn list(
    reads: &Reads,
    request: &ResourceRequest,
    query: &Query,
    read_view: &ReadView,
) -> ApiResult<Reply> {
    let page = list_page(reads, request, query, read_view).await?;
    let text = list_text(reads, &request.kind, page).await?;
    Ok(reply::json_pieces(StatusCode::OK, text))
}

/// Parses the selectors of a list or watch.
pub(crate) fn selection(reads: &Reads, kind: &Arc<Kind>, query: &Query) -> ApiResult<Selection> {
    let selection = Selection::parse(kind, query)?;
    if reads.has_shards {
        selection.sharded(query)
    } else {
        Ok(selection)
    }
}

/// Returns the page that a query selects.
pub(crate) async fn list_page(
    reads: &Reads,
    request: &ResourceRequest,
    query: &Query,
    read_view: &ReadView,
) -> ApiResult<Page> {
    let options = ListOptions::of_list(query)?;
    let selection = selection(reads, &request.kind, query)?;
    let position = options
        .token
        .map(|token| position(token, &options))
        .transpose()?;
    let at = match position {
        Some(_) => At::Newest,
        None => wanted_state(&options)?,
    };
    let wanted = match at {
        At::Newest => None,
        At::Any => Some(0),
        At::NotOlderThan(wanted) | At::Exactly(wanted) => Some(wanted),
    };
    let limit = options
        .limit
        .filter(|_| options.resource_version != Some("0"));
    let mut at = at;
    if let Some(wanted) = wanted {
        let horizon = wait_for_revision(reads, wanted, options.timeout_seconds, read_view).await?;
        at = match (at, horizon) {
            (At::Any | At::NotOlderThan(_), Some(horizon)) => At::Exactly(horizon),
            _ => at,
        };
    }
    read_page(reads, request, &selection, at, limit, position.as_ref())
}

fn read_page(
    reads: &Reads,
    request: &ResourceRequest,
    selection: &Selection,
    at: At,
    limit: Option<usize>,
    position: Option<&Position>,
) -> ApiResult<Page> {
    let namespace = request.namespace.as_str();
    let mut collection = Collection::new(&request.kind.storage, namespace);
    if let Some(position) = position {
        collection = collection.starting_at(position.first(&request.kind, namespace));
    }
    let revision = match (position, at) {
        (Some(position), _) => position.revision,
        (None, At::Exactly(revision)) => Some(revision),
        _ => None,
    };
    let limit = limit.unwrap_or(usize::MAX);
    // A selection may leave out any object.
    let is_everything = selection.is_everything();
    let read = if is_everything { limit } else { usize::MAX };
    let page = match revision {
        None => reads.store.page(&collection, read),
        Some(revision) => {
            let page = reads.store.page_at(&collection, read, revision);
            page.map_err(|_| expired(position))?
        }
    };
    let (revision, mut objects, mut rest) = (page.revision, page.objects, page.rest);
    if !is_everything {
        objects.retain(|object| selection.matches(object));
        rest = objects.len().saturating_sub(limit);
        objects.truncate(limit);
    }
    let token = objects
        .last()
        .filter(|_| rest > 0)
        .map(|last| Position::after(&last.key, namespace, revision).token());
    let remaining = (rest > 0 && is_everything).then_some(rest);
    Ok(Page {
        objects,
        revision,
        token,
        remaining,
        shard_selector: selection.shard_selector(),
    })
}

/// Returns the text of a list in pieces shared with the store.
///
/// # Errors
///
/// A custom resource can't be converted.
pub(crate) async fn list_text(reads: &Reads, kind: &Kind, page: Page) -> ApiResult<Vec<Bytes>> {
    let objects = &page.objects;
    let (head, tail) = list_frame(kind, &page);
    // A list names the kind of its items, except of custom resources.
    let is_custom = kind.custom.is_some();
    let is_view = kind.has(Trait::View);
    let type_meta = format!(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",",
        kind.kind,
        kind.api_version()
    );
    let mut separator: &'static [u8] = if is_custom { b"" } else { b"{" };
    let mut pieces = Vec::with_capacity(2 * objects.len() + 2);
    pieces.push(head.into());
    for object in objects {
        pieces.push(Bytes::from_static(separator));
        separator = if is_custom { b"," } else { b",{" };
        pieces.push(if is_custom {
            served_text(reads, kind, object, Earlier::Used).await?
        } else if is_view {
            let text = served_text(reads, kind, object, Earlier::Used).await?;
            text.slice(type_meta.len()..)
        } else {
            object.item_text()
        });
    }
    pieces.push(tail.into());
    Ok(pieces)
}

/// Returns the text of a list before and after its items. Lists of custom resources have no Go type,
/// so their fields are in the order of the names.
fn list_frame(kind: &Kind, page: &Page) -> (String, String) {
    let list_kind = kind.list_kind();
    let version = kind.api_version();
    let is_custom = kind.custom.is_some();
    let token = page.token.as_ref().map(|token| json!(token));
    let members = [
        ("resourceVersion", Some(json!(page.revision.to_string()))),
        ("continue", token.or(is_custom.then(|| json!("")))),
        ("remainingItemCount", page.remaining.map(|rest| json!(rest))),
        (
            "shardInfo",
            page.shard_selector
                .as_ref()
                .map(|selector| json!({"selector": selector})),
        ),
    ];
    let mut members: Vec<String> = members
        .into_iter()
        .filter_map(|(name, value)| Some(format!("\"{name}\":{}", value?)))
        .collect();
    if is_custom {
        members.sort_unstable();
    }
    let metadata = members.join(",");
    if is_custom {
        return (
            format!("{{\"apiVersion\":\"{version}\",\"items\":["),
            format!("],\"kind\":\"{list_kind}\",\"metadata\":{{{metadata}}}}}"),
        );
    }
    (
        format!(
            "{{\"kind\":\"{list_kind}\",\"apiVersion\":\"{version}\",\"metadata\":{{{metadata}}},\"items\":["
        ),
        "]}".to_owned(),
    )
}

/// Returns the state requested by a list without a continue token.
fn wanted_state(options: &ListOptions<'_>) -> ApiResult<At> {
    let Some(text) = options.resource_version else {
        return Ok(At::Newest);
    };
    let revision = parse_version_field(text)
        .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
    Ok(match (revision, options.version_match) {
        (0, _) => At::Any,
        (_, Some("Exact")) => At::Exactly(revision),
        // Legacy semantics of a version without `resourceVersionMatch`.
        (_, None) if options.limit.is_some() => At::Exactly(revision),
        _ => At::NotOlderThan(revision),
    })
}

/// Returns the position in a continue token.
fn position(token: &str, options: &ListOptions<'_>) -> ApiResult<Position> {
    let position = Position::parse(token)
        .map_err(|why| ApiError::bad_request(format!("invalid continue token: {why}")))?;
    if !matches!(options.resource_version, None | Some("0")) {
        return Err(ApiError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    Ok(position)
}

fn expired(position: Option<&Position>) -> ApiError {
    match position {
        None => ApiError::expired("The resourceVersion for the provided list is too old."),
        Some(position) => ApiError {
            metadata: Some(json!({"continue": position.at_newest().token()})),
            ..ApiError::expired(CONTINUE_TOO_OLD)
        },
    }
}
