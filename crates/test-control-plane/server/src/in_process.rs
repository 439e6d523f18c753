//! In-process requests, as a service for one user's clients.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use tower::Service;

use crate::auth::Identity;
use crate::reply::{BoxError, Reply};
use crate::server::{ApiServer, ConnectionDropped};

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
