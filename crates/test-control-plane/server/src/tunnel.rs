//! Upgraded connections in this process: HTTP/1.1 over a pipe, which a client library can take over.

use std::sync::Arc;

use bytes::Bytes;
use http::header::UPGRADE;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::duplex;

use crate::pipeline;
use crate::reply::{BoxError, ConnectionDropped, Reply};
use crate::state::ServerState;
use crate::transport;

/// Length of the pipe in bytes.
const PIPE_MAX: usize = 64 * 1024;

/// Reports whether a request asks for an upgrade, but came without a connection.
pub(crate) fn is_wanted<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(UPGRADE) && request.extensions().get::<OnUpgrade>().is_none()
}

/// Sends a request through a separate connection.
///
/// # Errors
///
/// The server dropped the connection.
pub(crate) async fn send<B>(
    state: Arc<ServerState>,
    request: Request<B>,
) -> Result<Reply, ConnectionDropped>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let (mut parts, body) = request.into_parts();
    let body = transport::read_body(body).await.unwrap_or_default();
    let extensions = std::mem::take(&mut parts.extensions);
    let (near, far) = duplex(PIPE_MAX);
    let tasks = Arc::clone(&state);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().extend(extensions.clone());
        let state = Arc::clone(&state);
        async move { pipeline::serve(&state, request).await }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(far), service)
        .with_upgrades();
    tasks.streams.spawn(async move {
        if let Err(err) = served.await {
            tracing::debug!(%err, "a connection in this process ended");
        }
    });
    let connected = hyper::client::conn::http1::handshake(TokioIo::new(near)).await;
    let (mut sender, connection) = connected.map_err(|_| ConnectionDropped)?;
    tasks.streams.spawn(async move {
        // The sender gets its errors.
        let _ = connection.with_upgrades().await;
    });
    let request = Request::from_parts(parts, Full::new(body));
    let response: Response<Incoming> = sender
        .send_request(request)
        .await
        .map_err(|_| ConnectionDropped)?;
    Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
}
