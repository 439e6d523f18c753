//! Servers for the replay.

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request};
use http_body_util::Full;
use kube_test_control_plane::auth::{AUTHENTICATED, Identity, Peer, Tokens};
use kube_test_control_plane::{ServerConfig, TestControlPlane};
use serde_json::json;
use tokio::task::JoinSet;

use crate::exchange::{Answer, CONTROLLER_TOKEN, Credentials, authorize};
use crate::remote::Remote;

/// Host of the embedded server; every client sends a host.
const EMBEDDED_HOST: HeaderValue = HeaderValue::from_static("127.0.0.1:6443");

/// Server for the replay.
#[derive(Debug)]
pub enum Against {
    /// An embedded server per case, in paused time.
    Embedded,
    /// A server behind a TLS port, in real time.
    Remote(Remote),
}

/// Server of a replay.
pub(crate) enum Server {
    Embedded(TestControlPlane),
    Remote(Remote),
}

impl Server {
    /// Starts an embedded server, or takes the other one.
    pub(crate) async fn start(against: &Against) -> anyhow::Result<Self> {
        match against {
            Against::Embedded => Self::embedded().await,
            Against::Remote(remote) => Ok(Self::Remote(remote.clone())),
        }
    }

    /// Starts a server that is configured like the recorded one: no controllers, unknown fields
    /// dropped, RBAC on with the default roles bound.
    pub(super) async fn embedded() -> anyhow::Result<Self> {
        let mut tokens = Tokens::default();
        tokens.insert(
            CONTROLLER_TOKEN,
            Identity::service_account("kube-system", "statefulset-controller").group(AUTHENTICATED),
        );
        let config = ServerConfig::default().tokens(tokens);
        let plane = TestControlPlane::builder().server_config(config);
        Ok(Self::Embedded(plane.try_start().await?))
    }

    /// Stops an embedded server.
    pub(crate) async fn stop(self) {
        if let Self::Embedded(plane) = self {
            plane.stop().await;
        }
    }

    /// Sends a request.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        credentials: &Credentials,
    ) -> anyhow::Result<Answer> {
        let plane = match self {
            Self::Remote(remote) => return remote.send(request, credentials).await,
            Self::Embedded(plane) => plane,
        };
        request.headers_mut().insert(HOST, EMBEDDED_HOST);
        match credentials {
            Credentials::Administrator => {}
            Credentials::Nobody => {
                request.extensions_mut().insert(Peer::default());
            }
            Credentials::Token(token) => authorize(&mut request, token)?,
        }
        let reply = plane.server().serve(request).await;
        let (parts, body) = reply.context("ask the embedded server")?.into_parts();
        Ok(Answer {
            parts,
            body,
            _connection: JoinSet::new(),
        })
    }

    pub(super) async fn create_namespace(&self, name: &str) -> anyhow::Result<()> {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let request = Request::post("/api/v1/namespaces")
            .header("content-type", "application/json")
            .body(body.to_string().into())?;
        let answer = self.send(request, &Credentials::Administrator).await?;
        let status = answer.parts.status;
        ensure!(status.is_success(), "the server answers {status}");
        Ok(())
    }
}
