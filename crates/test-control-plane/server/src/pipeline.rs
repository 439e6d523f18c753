//! Processing of a request: authentication, fault rules, handler and audit log.

mod dispatch;
mod recording;
mod writes;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::server::{ApiServer, ConnectionDropped};
use kube_test_control_plane_api::decode;
use kube_test_control_plane_api::query::{self, Query};
use recording::Recording;

use crate::auth::Sender;
use crate::faults::Interrupted;
use crate::incoming::Incoming;
use crate::reply::{self, BoxError, Reply};
use crate::transport::{self, ResponseEncoder};
use crate::tunnel;

impl ApiServer {
    /// Answers a request.
    ///
    /// # Errors
    ///
    /// A fault drops or refuses the connection, or the reference would panic on the request. All
    /// other failures are responses.
    pub async fn serve<B>(&self, request: Request<B>) -> Result<Reply, ConnectionDropped>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let connection = self.faults().outage().connect().ok_or(ConnectionDropped)?;
        tokio::select! {
            biased;
            () = connection.cancelled() => Err(ConnectionDropped),
            answered = self.read_and_answer(request, &connection) => answered,
        }
    }

    async fn read_and_answer<B>(
        &self,
        request: Request<B>,
        connection: &CancellationToken,
    ) -> Result<Reply, ConnectionDropped>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let incoming = self.receive(request).await;
        let (method, headers) = (&incoming.method, &incoming.headers);
        let encoder = ResponseEncoder::new(method, headers, &incoming.query, self.stamps());
        let reply = Box::pin(self.answer(&incoming, &encoder, connection)).await?;
        Ok(encoder.stamp(reply, self.stamps()))
    }

    /// Reads a request with its body.
    pub(crate) async fn receive<B>(&self, request: Request<B>) -> Incoming
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let (mut parts, body) = request.into_parts();
        let upgrade = parts.extensions.remove();
        let sender = Sender::of(&parts.extensions, self.admin());
        let query_text = parts.uri.query().unwrap_or_default().to_owned();
        let query = Query::parse(&query_text);
        let content_type = parts.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let (sent, unreadable) = match transport::read_body(body).await {
            Ok(body) => (body, None),
            Err(err) => (Bytes::new(), Some(err)),
        };
        let body = decode::as_utf8(content_type.unwrap_or_default(), &sent);
        Incoming {
            method: parts.method,
            host: transport::host(&parts.uri, &parts.headers),
            path: query::decode_path(parts.uri.path()).into_owned(),
            query,
            query_text,
            headers: parts.headers,
            body,
            sent,
            unreadable,
            sender,
            upgrade,
        }
    }

    async fn answer(
        &self,
        incoming: &Incoming,
        encoder: &ResponseEncoder,
        connection: &CancellationToken,
    ) -> Result<Reply, ConnectionDropped> {
        let identity = self.identify(incoming);
        let facts = Arc::new(incoming.facts(&identity.user));
        let decision = self.faults().decide(&facts, &incoming.body);
        let recording = Recording {
            server: self,
            incoming,
            identity: &identity,
            facts: &facts,
            audit_id: encoder.audit_id(),
            fault: decision.names(),
            received: self.clock().now(),
            begun: Instant::now(),
            is_in_log: AtomicBool::new(false),
        };
        if let Some(code) = decision.code_without_handling() {
            recording.finish(self.store().revision(), code, None);
        }
        let handled = async {
            let before = self.store().revision();
            let reply = match self.dispatch(&identity, incoming, &facts).await {
                Ok(reply) => {
                    recording.finish(before, reply.status().as_u16(), None);
                    reply
                }
                Err(err) if err.closes_connection() => {
                    recording.finish(before, err.code, Some(&err));
                    return Err(ConnectionDropped);
                }
                Err(err) => {
                    recording.finish(before, err.code, Some(&err));
                    reply::error(&err)
                }
            };
            Ok(encoder.encode(reply).await)
        };
        let carried_out = decision.carry_out(&facts, handled);
        let result = match incoming.time_limit(&facts) {
            None => carried_out.await,
            Some(limit) => timeout(limit, carried_out).await.unwrap_or_else(|_| {
                recording.give_up();
                Ok(reply::timed_out())
            }),
        };
        match result {
            Ok(reply) => Ok(self.faults().follow(&facts, connection.clone(), reply)),
            Err(Interrupted::Dropped | Interrupted::Failed(ConnectionDropped)) => {
                Err(ConnectionDropped)
            }
        }
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
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

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            if tunnel::is_wanted(&request) {
                return tunnel::send(server, request).await;
            }
            server.serve(request).await
        })
    }
}
