//! Writes with a body: the target part of an object, and the body's format.

use http::StatusCode;
use http::header::{CONTENT_TYPE, USER_AGENT};
use kube_test_control_plane_api::kinds::{SCALE, Subresource, Target, Trait, Verb, stored};
use kube_test_control_plane_api::options::{Write, WriteOptions};
use kube_test_control_plane_api::patch::{Patch, is_apply};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::{decode, warnings};

use crate::handlers::{self, ScaleSource, Source};
use crate::incoming::Incoming;
use crate::policies;
use crate::reply::{self, Reply};
use crate::route::ResourceRequest;
use crate::state::Writes;
use crate::write;

pub(super) fn handle_create(
    writes: &Writes,
    request: &ResourceRequest,
    incoming: &Incoming,
) -> ApiResult<Reply> {
    let options = WriteOptions::parse(Write::Create, &incoming.query, incoming.header(USER_AGENT))?;
    let format = incoming.format()?;
    match request.target {
        Target::Part(Subresource::Binding) => {
            let body = decode::value(format, &incoming.body)?;
            handlers::review_posted(&writes.admission, request, &body, options.dry_run)?;
            policies::review_posted(&writes.access, request, &body, &options)?;
            handlers::bind(writes, request, &body, options.dry_run)
        }
        Target::Part(Subresource::Eviction) => {
            let body = decode::value(format, &incoming.body)?;
            handlers::review_posted(&writes.admission, request, &body, options.dry_run)?;
            policies::review_posted(&writes.access, request, &body, &options)?;
            handlers::evict(writes, request, &incoming.query, &body, &options)
        }
        Target::Part(Subresource::Token) => {
            handlers::post_virtual(writes, request, incoming, &options)
        }
        Target::Object if request.kind.has(Trait::Virtual) => {
            handlers::post_virtual(writes, request, incoming, &options)
        }
        _ => {
            let (draft, mut warnings) =
                write::decode(writes.reads.behaviour(), request, incoming, &options)?;
            warnings.extend(warnings::of_owners(&draft.value, false));
            let created = handlers::create(writes, request, draft, &options);
            if let Ok(written) = &created {
                warnings.extend_from_slice(&written.warnings);
            }
            let reply = created.map(|written| reply::json_text(StatusCode::CREATED, written.text));
            reply::with_warnings(reply, &warnings)
        }
    }
}

pub(super) fn handle_update(
    writes: &Writes,
    request: &ResourceRequest,
    incoming: &Incoming,
) -> ApiResult<Reply> {
    let (query, agent) = (&incoming.query, incoming.header(USER_AGENT));
    if request.verb == Verb::Patch && is_apply(incoming.header(CONTENT_TYPE)) {
        let options = WriteOptions::parse(Write::Apply, query, agent)?;
        return handlers::apply(writes, request, &incoming.body, &options);
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
        if request.target == Target::Part(Subresource::Scale) {
            let text =
                handlers::update_scale(writes, request, &ScaleSource::Patch(&patch), &options)?;
            return Ok(reply::json_text(StatusCode::OK, text));
        }
        let found = write::check_patch(&writes.reads, request, &patch, body, validation)?;
        (Source::Patch(patch), found)
    } else if request.target == Target::Part(Subresource::Scale) {
        let (scale, warnings) =
            handlers::decode_scale(writes.reads.behaviour(), request, incoming, &options)?;
        let text = handlers::update_scale(writes, request, &ScaleSource::Put(&scale), &options);
        let reply = text.map(|text| reply::json_text(StatusCode::OK, text));
        return reply::with_warnings(reply, &warnings);
    } else {
        let (draft, mut found) =
            write::decode(writes.reads.behaviour(), request, incoming, &options)?;
        found.extend(warnings::of_owners(&draft.value, false));
        (Source::Put(draft), found)
    };
    let updated = handlers::update(writes, request, &source, &options);
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
