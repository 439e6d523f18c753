//! Dispatch of requests to handlers.

use std::sync::Arc;

use http::StatusCode;
use http::header::ACCEPT;
use http_body_util::{BodyExt, Collected};
use kube_apimachinery::json::{is_deep, on_large_stack};
use kube_test_control_plane_api::answer::negotiate;
use kube_test_control_plane_api::answer::represent::Representation;
use kube_test_control_plane_api::kinds::{Subresource, Target, Verb};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::{validation, warnings};

use crate::access::RequestIdentity;
use crate::faults::{ReadView, RequestFacts};
use crate::incoming::Incoming;
use crate::reply::{self, Reply};
use crate::route::{ResourceRequest, Route, route};
use crate::server::ApiServer;

impl ApiServer {
    /// Answers an authenticated request.
    pub(super) async fn dispatch(
        &self,
        identity: &RequestIdentity,
        incoming: &Incoming,
        facts: &Arc<RequestFacts>,
    ) -> ApiResult<Reply> {
        self.authorize_request(identity, incoming)?;
        let custom = self.custom_kinds();
        match route(&incoming.method, &incoming.path, &incoming.query, &custom)? {
            Route::Resource(mut request) => {
                if let Some(error) = &incoming.unreadable {
                    return Err(error.clone());
                }
                request.user = Some(Arc::clone(&identity.user));
                let read_view = self.faults().read_view(Arc::clone(facts));
                let handled = self.handle(&request, incoming, read_view);
                let reply = if self.is_deep(&request, incoming) {
                    on_large_stack(handled).await
                } else {
                    handled.await
                };
                if reply.is_ok() && !matches!(request.verb, Verb::Get | Verb::List | Verb::Watch) {
                    self.follow_write(&request);
                }
                let warning = warnings::deprecation(&request.kind).map(str::to_owned);
                reply::with_warnings(reply, warning.as_slice())
            }
            other => self.discover(&other, incoming),
        }
    }

    /// Reports whether a request may involve deeply nested values that need a large stack.
    fn is_deep(&self, request: &ResourceRequest, incoming: &Incoming) -> bool {
        let is_write = !matches!(request.verb, Verb::Get | Verb::List | Verb::Watch);
        let body = std::str::from_utf8(&incoming.body);
        let stored = || self.store().get(&Self::key(request));
        is_write
            && (body.is_ok_and(is_deep) || stored().is_some_and(|object| object.needs_go_rules()))
    }

    async fn handle(
        &self,
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
            (_, Target::Part(Subresource::Log)) => Box::pin(self.pod_log(request, query)).await,
            (
                _,
                Target::Part(
                    Subresource::Attach
                    | Subresource::Exec
                    | Subresource::PortForward
                    | Subresource::Proxy,
                ),
            ) => Box::pin(self.connect(request, incoming)).await,
            (Verb::Get | Verb::List, Target::Object) if self.is_virtual(request) => {
                let found = self.read_virtual(request)?;
                Ok(reply::json_value(StatusCode::OK, &found))
            }
            (Verb::Get, Target::Part(Subresource::Scale)) => {
                Ok(reply::json_text(StatusCode::OK, self.get_scale(request)?))
            }
            (Verb::Get, _) => self.get(request, query, &read_view).await,
            (Verb::List, _) => self.list(request, query, &read_view).await,
            (Verb::Watch, _) => self.watch(request, query, representation, read_view).await,
            (Verb::Create, _) => self.handle_create(request, incoming),
            (Verb::Update | Verb::Patch, _) => self.handle_update(request, incoming),
            (Verb::Delete, _) => {
                let options = incoming.delete_options()?;
                let warning = warnings::of_deletion(&request.kind, &options);
                let warning = warning.map(str::to_owned);
                reply::with_warnings(self.delete(request, &options), warning.as_slice())
            }
            (Verb::DeleteCollection, _) => {
                let page = self.list_page(request, query, &read_view).await?;
                self.delete_collection(request, page, &incoming.delete_options()?)
            }
        }?;
        let mut reply = reply;
        reply.extensions_mut().insert(wanted);
        let is_whole = representation == Representation::Whole || request.verb == Verb::Watch;
        if is_whole || !reply.status().is_success() {
            return Ok(reply);
        }
        let (parts, body) = reply.into_parts();
        // The body is complete, so collecting it can't fail.
        let body = body.collect().await.map(Collected::to_bytes);
        let body = body.unwrap_or_default();
        let body = representation.body(&request.kind, body, self.clock().now())?;
        Ok(reply::with_body(parts, body))
    }
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
