//! Dispatch of requests to handlers.

use std::sync::Arc;

use http::StatusCode;
use http::header::ACCEPT;
use http_body_util::{BodyExt, Collected};
use kube_apimachinery::json::{is_deep, on_large_stack};
use kube_test_control_plane_api::kinds::{Subresource, Target, Verb};
use kube_test_control_plane_api::response::negotiate;
use kube_test_control_plane_api::response::represent::{Representation, check_is_one};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::{validation, warnings};
use tokio::time::Instant;

use super::writes::{handle_create, handle_update};
use crate::access::{self, RequestIdentity};
use crate::definitions;
use crate::faults::{ReadView, RequestFacts};
use crate::handlers;
use crate::incoming::Incoming;
use crate::reply::{self, Reply};
use crate::route::{Remarks, ResourceRequest, Route, route};
use crate::state::{Reads, ServerState};
use crate::watch;

/// Responds to an authenticated request.
pub(super) async fn dispatch(
    state: &ServerState,
    identity: &RequestIdentity,
    incoming: &Incoming,
    facts: &Arc<RequestFacts>,
    remarks: &Remarks,
    begun: Instant,
) -> ApiResult<Reply> {
    access::authorize_request(&state.access, identity, incoming)?;
    let custom = state.reads.custom_kinds();
    let Incoming {
        method,
        path,
        query,
        ..
    } = incoming;
    match route(method, path, query, &custom, remarks)? {
        Route::Resource(mut request) => {
            if let Some(error) = &incoming.unreadable {
                return Err(error.clone());
            }
            request.user = Some(Arc::clone(&identity.user));
            request.remarks = remarks.clone();
            request.begun = Some(begun);
            if state.reads.has_reviews() {
                let newest = state.reads.store.revision();
                request.admission_revision = state.faults.admission_horizon(facts, newest);
            }
            let (faults, facts) = (state.faults.clone(), Arc::clone(facts));
            let read_view = ReadView { faults, facts };
            let handled = handle(state, &request, incoming, read_view);
            let reply = if needs_large_stack(&state.reads, &request, incoming) {
                on_large_stack(handled).await
            } else {
                handled.await
            };
            if reply.is_ok() && !matches!(request.verb, Verb::Get | Verb::List | Verb::Watch) {
                definitions::follow_write(&state.writes, &request);
            }
            reply::with_first_warning(reply, warnings::deprecation(&request.kind))
        }
        other => handlers::discover(&state.access, &other, incoming),
    }
}

/// Reports whether a request may involve deeply nested values that need a large stack.
fn needs_large_stack(reads: &Reads, request: &ResourceRequest, incoming: &Incoming) -> bool {
    let is_write = !matches!(request.verb, Verb::Get | Verb::List | Verb::Watch);
    let body = std::str::from_utf8(&incoming.body);
    let stored = || reads.store.get(&request.key());
    is_write && (body.is_ok_and(is_deep) || stored().is_some_and(|object| object.needs_go_rules()))
}

async fn handle(
    state: &ServerState,
    request: &ResourceRequest,
    incoming: &Incoming,
    read_view: ReadView,
) -> ApiResult<Reply> {
    check_name_fits(request)?;
    let query = &incoming.query;
    let accept = incoming.header(ACCEPT);
    let wanted = if request.target == Target::Part(Subresource::Log) {
        negotiate::logs(accept)?;
        negotiate::plain(accept)
    } else {
        negotiate::objects(&request.kind, accept, request.verb, query)?
    };
    let representation = wanted.representation;
    if request.verb != Verb::Watch {
        query.timeout()?;
    }
    let reply = match (request.verb, request.target) {
        (_, Target::Part(Subresource::Log)) => {
            Box::pin(handlers::pod_log(&state.streams, request, query)).await
        }
        (
            _,
            Target::Part(
                Subresource::Attach
                | Subresource::Exec
                | Subresource::PortForward
                | Subresource::Proxy,
            ),
        ) => Box::pin(handlers::connect(&state.streams, request, incoming)).await,
        (Verb::Get | Verb::List, Target::Object) if handlers::is_virtual(&state.reads, request) => {
            let found = handlers::read_virtual(&state.reads, request, query)?;
            Ok(reply::json_value(StatusCode::OK, &found))
        }
        (Verb::Get, Target::Part(Subresource::Scale)) => Ok(reply::json_text(
            StatusCode::OK,
            handlers::get_scale(&state.reads, request).await?,
        )),
        (Verb::Get, _) => handlers::get(&state.reads, request, query, &read_view).await,
        (Verb::List, _) => handlers::list(&state.reads, request, query, &read_view).await,
        (Verb::Watch, _) => {
            watch::watch(&state.reads, request, query, representation, read_view).await
        }
        (Verb::Create, _) => handle_create(&state.writes, request, incoming).await,
        (Verb::Update | Verb::Patch, _) => handle_update(&state.writes, request, incoming).await,
        (Verb::Delete, _) => {
            let options = incoming.delete_options()?;
            let warning = warnings::of_deletion(&request.kind, &options);
            let warning = warning.map(str::to_owned);
            let deleted = handlers::delete(&state.writes, request, &options).await;
            reply::with_warnings(deleted, warning.as_slice())
        }
        (Verb::DeleteCollection, _) => {
            let page = handlers::list_page(&state.reads, request, query, &read_view).await?;
            let options = incoming.delete_options()?;
            handlers::delete_collection(&state.writes, request, page, &options).await
        }
    }?;
    let mut reply = reply;
    reply.extensions_mut().insert(wanted);
    let kind = &request.kind;
    let is_one = !matches!(
        request.verb,
        Verb::List | Verb::Watch | Verb::DeleteCollection
    );
    let is_sent = representation == Representation::Whole && !(is_one && kind.custom.is_some());
    if is_sent || request.verb == Verb::Watch || !reply.status().is_success() {
        return Ok(reply);
    }
    let (parts, body) = reply.into_parts();
    // The body is complete, so collecting it can't fail.
    let body = body.collect().await.map(Collected::to_bytes);
    let body = body.unwrap_or_default();
    if is_one {
        check_is_one(kind, &body)?;
    }
    let body = representation.body(kind, body, state.reads.clock().now())?;
    Ok(reply::with_body(parts, body))
}

/// Rejects invalid names, which have another meaning in paths.
fn check_name_fits(request: &ResourceRequest) -> ApiResult<()> {
    // A create's name is in its body and is validated there.
    if request.verb == Verb::Create && request.target == Target::Object {
        return Ok(());
    }
    let found = validation::path_segment(&request.name);
    if found.is_empty() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "Name parameter invalid: {:?}: {}",
        request.name,
        found.join(";")
    )))
}
