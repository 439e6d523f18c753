//! Writes with a body: the target part of an object, and the body's format.

use http::StatusCode;
use http::header::{CONTENT_TYPE, USER_AGENT};
use kube_test_control_plane_api::decode::{self, BodyFormat};
use kube_test_control_plane_api::kinds::{SCALE, Subresource, Target, Trait, Verb, stored};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::{Write, WriteOptions};
use kube_test_control_plane_api::patch::{Patch, is_apply};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::warnings;

use crate::handlers::{ScaleSource, Source};
use crate::incoming::Incoming;
use crate::reply::{self, Reply};
use crate::route::ResourceRequest;
use crate::server::ApiServer;

impl ApiServer {
    pub(super) fn handle_create(
        &self,
        request: &ResourceRequest,
        incoming: &Incoming,
    ) -> ApiResult<Reply> {
        let options =
            WriteOptions::parse(Write::Create, &incoming.query, incoming.header(USER_AGENT))?;
        let format = incoming.format()?;
        match request.target {
            Target::Part(Subresource::Binding) => {
                let body = decode::value(format, &incoming.body)?;
                self.review_posted(request, &body, options.dry_run)?;
                self.bind(request, &body, options.dry_run)
            }
            Target::Part(Subresource::Eviction) => {
                let body = decode::value(format, &incoming.body)?;
                self.review_posted(request, &body, options.dry_run)?;
                self.evict(request, &incoming.query, &body, &options)
            }
            Target::Part(Subresource::Token) => self.post_virtual(request, incoming, &options),
            Target::Object if request.kind.has(Trait::Virtual) => {
                self.post_virtual(request, incoming, &options)
            }
            _ => {
                let (draft, mut warnings) = self.decode(request, incoming, &options)?;
                warnings.extend(warnings::of_owners(&draft.value, false));
                let created = self.create(request, draft, &options);
                if let Ok(written) = &created {
                    warnings.extend_from_slice(&written.warnings);
                }
                let reply =
                    created.map(|written| reply::json_text(StatusCode::CREATED, written.text));
                reply::with_warnings(reply, &warnings)
            }
        }
    }

    pub(super) fn handle_update(
        &self,
        request: &ResourceRequest,
        incoming: &Incoming,
    ) -> ApiResult<Reply> {
        let (query, agent) = (&incoming.query, incoming.header(USER_AGENT));
        if request.verb == Verb::Patch && is_apply(incoming.header(CONTENT_TYPE)) {
            let options = WriteOptions::parse(Write::Apply, query, agent)?;
            return self.apply(request, &incoming.body, &options);
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
            if self.store().get(&Self::key(request)).is_none() {
                return Err(ApiError::not_found(stored(&request.kind), &request.name));
            }
            let validation = options.field_validation;
            let patch = Patch::parse(of, content_type, &incoming.sent, validation)?;
            if request.target == Target::Part(Subresource::Scale) {
                let text = self.update_scale(request, &ScaleSource::Patch(&patch), &options)?;
                return Ok(reply::json_text(StatusCode::OK, text));
            }
            let found = self.check_patch(request, &patch, body, validation)?;
            (Source::Patch(patch), found)
        } else if request.target == Target::Part(Subresource::Scale) {
            let (scale, warnings) = self.decode_scale(request, incoming, &options)?;
            let text = self.update_scale(request, &ScaleSource::Put(&scale), &options);
            let reply = text.map(|text| reply::json_text(StatusCode::OK, text));
            return reply::with_warnings(reply, &warnings);
        } else {
            let (draft, mut found) = self.decode(request, incoming, &options)?;
            found.extend(warnings::of_owners(&draft.value, false));
            (Source::Put(draft), found)
        };
        let updated = self.update(request, &source, &options);
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

    /// Returns the object in a body and the warnings for the client.
    pub(crate) fn decode(
        &self,
        request: &ResourceRequest,
        incoming: &Incoming,
        options: &WriteOptions,
    ) -> ApiResult<(Draft, Vec<String>)> {
        let kind = &request.kind;
        let format = incoming.format()?;
        let draft = decode::object(kind, format, &incoming.sent)?;
        let (text, in_yaml) = match format {
            BodyFormat::Yaml => {
                let sent = String::from_utf8_lossy(&incoming.body);
                let text = draft.to_value().to_string();
                (text.into(), decode::repeated_keys(&sent))
            }
            BodyFormat::Json => (incoming.body.clone(), None),
            // Unknown protobuf field numbers don't count as unknown fields.
            BodyFormat::Protobuf => return Ok((draft, Vec::new())),
        };
        let check = self.member_check(kind, options.field_validation);
        let warnings = check.body(&text, in_yaml)?;
        Ok((draft, warnings))
    }
}
