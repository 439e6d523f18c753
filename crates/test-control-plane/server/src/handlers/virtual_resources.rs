//! Virtual resources, which are never stored.

use std::sync::Arc;

use http::StatusCode;
use http::header::USER_AGENT;
use kube_test_control_plane_api::decode;
use kube_test_control_plane_api::kinds::{self, Subresource, Target};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::{Write, WriteOptions};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use crate::incoming::Incoming;
use crate::reply::{self, Reply};
use crate::route::ResourceRequest;
use crate::server::ApiServer;

impl ApiServer {
    /// Answers a POST of a kind with
    /// [`Trait::Virtual`](kube_test_control_plane_api::kinds::Trait::Virtual), or to the
    /// subresource `token`.
    pub(crate) fn post_virtual(
        &self,
        request: &ResourceRequest,
        incoming: &Incoming,
        options: &WriteOptions,
    ) -> ApiResult<Reply> {
        if request.kind.kind == "Binding" {
            return self.post_binding(request, incoming);
        }
        let asked = ResourceRequest {
            kind: match request.target {
                Target::Part(Subresource::Token) => Arc::clone(&kinds::TOKEN_REQUEST),
                _ => Arc::clone(&request.kind),
            },
            ..request.clone()
        };
        let (mut draft, warnings) = self.decode(&asked, incoming, options)?;
        self.normalize(&asked.kind, &mut draft)?;
        self.track(&asked, options, None, &mut draft)?;
        let mut draft = Draft::from_value(
            &asked.kind,
            match request.target {
                Target::Part(Subresource::Token) => self.request_token(request, draft)?,
                _ => self.review(request, draft)?,
            },
        );
        self.normalize(&asked.kind, &mut draft)?;
        let reply = reply::json_text(StatusCode::CREATED, draft.encode());
        reply::with_warnings(Ok(reply), &warnings)
    }

    /// Handles the legacy binding of a pod, with the pod's name in the body.
    fn post_binding(&self, request: &ResourceRequest, incoming: &Incoming) -> ApiResult<Reply> {
        let body = decode::value(incoming.format()?, &incoming.body)?;
        let name = body.pointer("/metadata/name").and_then(Value::as_str);
        let pods = kinds::by_resource("", "v1", "pods").ok_or_else(ApiError::no_such_resource)?;
        let request = ResourceRequest {
            kind: Arc::clone(pods),
            target: Target::Part(Subresource::Binding),
            name: name.unwrap_or_default().to_owned(),
            ..request.clone()
        };
        let agent = incoming.header(USER_AGENT);
        let options = WriteOptions::parse(Write::Create, &incoming.query, agent)?;
        self.bind(&request, &body, options.dry_run)
    }

    /// Returns the statuses of the control plane's components, none of which can be probed.
    pub(crate) fn component_statuses() -> Value {
        json!({
            "kind": "ComponentStatusList",
            "apiVersion": "v1",
            "metadata": {},
            "items": [],
        })
    }
}
