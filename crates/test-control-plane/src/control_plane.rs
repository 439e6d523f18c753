//! The control plane as tests and demos start it.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::{Clock, TokioClock};
use crate::reply::BoxError;
use crate::server::{ApiServer, ServerConfig, UnknownFields};

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// When the clock starts unless told otherwise: 2026-01-01T00:00:00Z.
const EPOCH_SECONDS: i64 = 1_767_225_600;

/// Builds a [`TestControlPlane`].
#[derive(Debug, Default)]
pub struct TestControlPlaneBuilder {
    config: ServerConfig,
    now: Option<Timestamp>,
}

/// A running control plane.
#[derive(Debug)]
pub struct TestControlPlane {
    server: ApiServer,
}

impl TestControlPlaneBuilder {
    /// Keeps or prunes members that the schema of v1.36.2 doesn't know.
    #[must_use]
    pub fn unknown_fields(mut self, unknown_fields: UnknownFields) -> Self {
        self.config.unknown_fields = unknown_fields;
        self
    }

    /// Seeds uids and generated names.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Sets the rest of the server's behaviour.
    #[must_use]
    pub fn server_config(mut self, config: ServerConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the time that the clock shows at the start.
    #[must_use]
    pub fn starting_at(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }

    /// Starts it. Must be called inside a tokio runtime.
    pub async fn start(self) -> TestControlPlane {
        let epoch = Timestamp::from_second(EPOCH_SECONDS).unwrap_or_default();
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(self.now.unwrap_or(epoch)));
        let server = ApiServer::new(self.config, clock);
        for name in NAMESPACES {
            let body = json!({"metadata": {"name": name}});
            server
                .call_json(Method::POST, "/api/v1/namespaces", "bootstrap", &body)
                .await;
        }
        TestControlPlane { server }
    }
}

impl TestControlPlane {
    /// A control plane to configure and start.
    pub fn builder() -> TestControlPlaneBuilder {
        TestControlPlaneBuilder::default()
    }

    /// The API server: a tower service, with store, audit log and fault rules.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The API server as a service for any client.
    pub fn service(&self) -> ApiServer {
        self.server.clone()
    }

    /// A client of this control plane, without sockets, in the namespace `default`.
    #[cfg(feature = "client")]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Ends every watch and stops the actors.
    pub async fn stop(self) {
        self.server.stop();
    }
}

impl ApiServer {
    /// Sends a request with a JSON body (none if null) in process; the code and the body of the
    /// answer, 0 and null if a fault dropped the connection.
    pub async fn call_json(
        &self,
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
        let bytes = if body.is_null() {
            Bytes::new()
        } else {
            body.to_string().into()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::USER_AGENT, user_agent)
            .header(http::header::CONTENT_TYPE, content_type)
            .body(Full::new(bytes).map_err(|never| -> BoxError { match never {} }));
        let Ok(request) = request else {
            return (StatusCode::BAD_REQUEST.as_u16(), Value::Null);
        };
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
