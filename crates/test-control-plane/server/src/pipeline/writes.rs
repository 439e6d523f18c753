//! Writes with a body: the target part of an object, and the body's format.

use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, USER_AGENT};
use kube_test_control_plane_api::kinds::{
    self, Kind, SCALE, Subresource, Target, Trait, Verb, stored,
};
use kube_test_control_plane_api::options::{Write, WriteOptions};
use kube_test_control_plane_api::patch::{Patch, is_apply};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::{decode, warnings};
use serde_json::Value;

use crate::handlers::{self, Origin, ScaleSource, Source};
use crate::incoming::Incoming;
use crate::reply::{self, Reply};
use crate::review;
use crate::route::ResourceRequest;
use crate::state::Writes;
use crate::write;

pub(super) async fn handle_create(
    writes: &Writes,
    request: &ResourceRequest,
    incoming: &Incoming,
) -> ApiResult<Reply> {
    let options = WriteOptions::parse(Write::Create, &incoming.query, incoming.header(USER_AGENT))?;
    incoming.format()?;
    match request.target {
        Target::Part(Subresource::Binding) => {
            let body = posted(writes, request, incoming, &kinds::BINDING, &options).await?;
            handlers::bind(writes, request, request, &body, &options).await
        }
        Target::Part(Subresource::Eviction) => {
            let body = posted(writes, request, incoming, &kinds::EVICTION, &options).await?;
            handlers::evict(writes, request, &incoming.query, &body, &options).await
        }
        Target::Part(Subresource::Token) => {
            handlers::post_virtual(writes, request, incoming, &options).await
        }
        Target::Object if request.kind.has(Trait::Virtual) => {
            handlers::post_virtual(writes, request, incoming, &options).await
        }
        _ => {
            let (draft, mut warnings) =
                write::decode(writes.reads.behaviour(), request, incoming, &options)?;
            warnings.extend(warnings::of_owners(&draft.value, false));
            let created = handlers::create(writes, request, (draft, Origin::Body), &options).await;
            if let Ok(written) = &created {
                warnings.extend_from_slice(&written.warnings);
            }
            let reply = created.map(|written| reply::json_text(StatusCode::CREATED, written.text));
            reply::with_warnings(reply, &warnings)
        }
    }
}

/// Returns the body posted to a subresource, as hooks, mutating policies and webhooks admit it.
async fn posted(
    writes: &Writes,
    request: &ResourceRequest,
    incoming: &Incoming,
    kind: &Arc<Kind>,
    options: &WriteOptions,
) -> ApiResult<Value> {
    let body = decode::value(incoming.format()?, &incoming.body)?;
    handlers::review_posted(&writes.admission, request, &body, options.dry_run)?;
    let body = write::posted(writes, request, kind, body, options)?;
    review::mutate_posted(&writes.access, request, body, options).await
}

pub(super) async fn handle_update(
    writes: &Writes,
    request: &ResourceRequest,
    incoming: &Incoming,
) -> ApiResult<Reply> {
    let (query, agent) = (&incoming.query, incoming.header(USER_AGENT));
    if request.verb == Verb::Patch && is_apply(incoming.header(CONTENT_TYPE)) {
        let options = WriteOptions::parse(Write::Apply, query, agent)?;
        return handlers::apply(writes, request, &incoming.body, &options).await;
    }
    let write = if request.verb == Verb::Patch {
        Write::Patch
    } else {
        Write::Update
    };
    let options = WriteOptions::parse(write, query, agent)?;
    let body = &incoming.body;
    let (source, mut warnings) = if request.verb == Verb::Patch {
        let of = match request.target {
            Target::Part(Subresource::Scale) if request.kind.custom.is_none() => &*SCALE,
            _ => &request.kind,
        };
        let content_type = incoming.header(CONTENT_TYPE);
        Patch::check_content_type(of, content_type)?;
        if writes.store.get(&request.key()).is_none() {
            return Err(ApiError::not_found(stored(&request.kind), &request.name));
        }
        let validation = options.field_validation;
        let patch = Patch::parse(of, content_type, &incoming.sent, validation)?;
        let found = write::check_patch(&writes.reads, request, &patch, body, validation).await?;
        if request.target == Target::Part(Subresource::Scale) {
            let source = ScaleSource::Patch(&patch);
            let text = handlers::update_scale(writes, request, &source, &options).await;
            let reply = text.map(|text| reply::json_text(StatusCode::OK, text));
            return reply::with_warnings(reply, &found);
        }
        (Source::Patch(patch), found)
    } else if request.target == Target::Part(Subresource::Scale) {
        let (scale, warnings) =
            handlers::decode_scale(writes.reads.behaviour(), request, incoming, &options)?;
        let source = ScaleSource::Put(&scale);
        let text = handlers::update_scale(writes, request, &source, &options).await;
        let reply = text.map(|text| reply::json_text(StatusCode::OK, text));
        return reply::with_warnings(reply, &warnings);
    } else {
        let (draft, mut found) =
            write::decode(writes.reads.behaviour(), request, incoming, &options)?;
        found.extend(warnings::of_owners(&draft.value, false));
        (Source::Put(draft), found)
    };
    let updated = handlers::update(writes, request, &source, &options).await;
    if let Ok(written) = &updated {
        warnings.extend_from_slice(&written.warnings);
    }
    let reply = updated.map(|written| {
        let code = if written.created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        reply::json_text(code, written.text)
    });
    reply::with_warnings(reply, &warnings)
}
