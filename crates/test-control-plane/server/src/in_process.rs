//! In-process requests: as a service for one user's clients, and for actors and tests without a
//! client library.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::Service;

use crate::auth::Identity;
use crate::faults::ACTOR_AGENT_PREFIX;
use crate::reply::{BoxError, Reply};
use crate::server::{ApiServer, ConnectionDropped};

/// The content type of server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

impl ApiServer {
    /// Sends a request as the administrator with a JSON body, or none if it is null; patches are
    /// strategic. Returns the status code and body: 0 and null if a fault dropped the connection.
    pub async fn call_json(
        &self,
        method: Method,
        path: &str,
        user_agent: &str,
        body: &Value,
    ) -> (u16, Value) {
        self.send_json(None, method, path, user_agent, body).await
    }

    /// Like [`call_json`](Self::call_json), as another user.
    pub async fn call_json_as(
        &self,
        identity: &Identity,
        method: Method,
        path: &str,
        user_agent: &str,
        body: &Value,
    ) -> (u16, Value) {
        let identity = Some(identity.clone());
        self.send_json(identity, method, path, user_agent, body)
            .await
    }

    /// Sends a server-side apply as the administrator. Returns the status code and body: 0 and null
    /// if a fault dropped the connection.
    pub async fn apply_json(&self, path: &str, user_agent: &str, body: &Value) -> (u16, Value) {
        self.send(None, (Method::PATCH, APPLY), path, user_agent, body)
            .await
    }

    async fn send_json(
        &self,
        identity: Option<Identity>,
        method: Method,
        path: &str,
        user_agent: &str,
        body: &Value,
    ) -> (u16, Value) {
        let content_type = if method == Method::PATCH {
            "application/strategic-merge-patch+json"
        } else {
            "application/json"
        };
        self.send(identity, (method, content_type), path, user_agent, body)
            .await
    }

    async fn send(
        &self,
        identity: Option<Identity>,
        (method, content_type): (Method, &str),
        path: &str,
        user_agent: &str,
        body: &Value,
    ) -> (u16, Value) {
        let bytes = if body.is_null() {
            Bytes::new()
        } else {
            body.to_string().into()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(USER_AGENT, user_agent)
            .header(CONTENT_TYPE, content_type)
            .body(Full::new(bytes));
        let Ok(mut request) = request else {
            return (400, Value::Null);
        };
        if let Some(identity) = identity {
            request.extensions_mut().insert(identity);
        }
        let Ok(reply) = self.serve(request).await else {
            return (0, Value::Null);
        };
        let code = reply.status().as_u16();
        let body = match reply.into_body().collect().await {
            Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null),
            Err(_) => Value::Null,
        };
        (code, body)
    }
}

/// The API server as a service for one user.
#[derive(Clone, Debug)]
pub struct ServiceAs {
    server: ApiServer,
    identity: Identity,
}

impl ServiceAs {
    /// Wraps `server` to send all requests as `identity`.
    pub fn new(server: ApiServer, identity: Identity) -> Self {
        Self { server, identity }
    }
}

impl<B> Service<Request<B>> for ServiceAs
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Reply;
    type Error = ConnectionDropped;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, ConnectionDropped>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.identity.clone());
        self.server.call(request)
    }
}

/// The API server as a service for one user agent of the administrator.
#[derive(Clone, Debug)]
pub struct ServiceWithAgent {
    server: ApiServer,
    agent: HeaderValue,
}

impl ServiceWithAgent {
    /// Wraps `server` to send all requests with this user agent, unless it isn't a valid header.
    pub fn new(server: ApiServer, agent: &str) -> Self {
        let agent = HeaderValue::from_str(agent);
        let agent = agent.unwrap_or(HeaderValue::from_static(ACTOR_AGENT_PREFIX));
        Self { server, agent }
    }
}

impl<B> Service<Request<B>> for ServiceWithAgent
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Reply;
    type Error = ConnectionDropped;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, ConnectionDropped>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let agent = self.agent.clone();
        request.headers_mut().insert(USER_AGENT, agent);
        self.server.call(request)
    }
}
