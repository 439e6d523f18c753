//! Connection handling: accept, encrypt, serve, close.

use std::convert::Infallible;
use std::fmt::Display;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::authentication::Chain;
use super::connections::{Connections, IDLE_MAX, Slot};
use super::handler::Handler;

/// Time limit for the TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Maximum size of the headers of an HTTP/2 request, in bytes. HTTP/1 uses the library's limit.
const HEADER_BYTES_MAX: u32 = 64 << 10;
/// Default limit of open requests per HTTP/2 connection.
///
/// Upstream: the default of `--http2-max-streams-per-connection` in the secure server.
const STREAMS_DEFAULT: u32 = 250;
/// Time limit for an HTTP/2 client to respond to a ping.
const PING_MAX: Duration = Duration::from_secs(15);
/// Time limit for requests in progress when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves requests on connections.
pub(crate) struct Server {
    handler: Handler,
    acceptor: TlsAcceptor,
    streams_max: u32,
    connections: Connections,
}

impl Server {
    /// Creates a server with these TLS settings. `streams_max` limits the open requests per HTTP/2
    /// connection; 0 for the default.
    pub(crate) fn new(handler: Handler, tls: ServerConfig, streams_max: u32) -> Self {
        Self {
            handler,
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            streams_max: if streams_max == 0 {
                STREAMS_DEFAULT
            } else {
                streams_max
            },
            connections: Connections::default(),
        }
    }

    /// Accepts connections until `stop`, then finishes the requests in progress.
    pub(crate) async fn run(self: Arc<Self>, listener: TcpListener, stop: CancellationToken) {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(_) = open.join_next(), if !open.is_empty() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        // Responses are small and need no batching.
                        let _ = stream.set_nodelay(true);
                        open.spawn(Arc::clone(&self).serve(stream, stop.clone()));
                    }
                    // Most likely out of file descriptors: let some connections end first.
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
        drop(listener);
        while open.join_next().await.is_some() {}
    }

    /// Serves one connection until it ends, must close, or the server stops.
    async fn serve<S>(self: Arc<Self>, stream: S, stop: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let slot = Arc::new(self.connections.admit());
        let shaking_hands = timeout(HANDSHAKE_MAX, self.acceptor.accept(stream));
        let stream = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = slot.must_close() => return,
            accepted = shaking_hands => match accepted {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a TLS handshake failed");
                    return;
                }
                Err(_) => return,
            }
        };
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let chain = chain_of(&stream);
        let io = TokioIo::new(stream);
        let streams_max = self.streams_max;
        let service = {
            let slot = Arc::clone(&slot);
            service_fn(move |request: Request<Incoming>| {
                let (server, chain) = (Arc::clone(&self), Arc::clone(&chain));
                let running = slot.begin();
                async move {
                    let answer = server.handler.answer(&chain, request).await;
                    drop(running);
                    Ok::<Answer, Infallible>(answer)
                }
            })
        };
        if http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .max_concurrent_streams(streams_max)
                .max_header_list_size(HEADER_BYTES_MAX)
                .keep_alive_interval(IDLE_MAX)
                .keep_alive_timeout(PING_MAX);
            let connection = builder.serve_connection(io, service);
            until_end(
                connection,
                http2::Connection::graceful_shutdown,
                &slot,
                &stop,
            )
            .await;
        } else {
            let mut builder = http1::Builder::new();
            // The timer starts at the end of the previous response.
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(IDLE_MAX);
            let connection = builder.serve_connection(io, service);
            until_end(
                connection,
                http1::Connection::graceful_shutdown,
                &slot,
                &stop,
            )
            .await;
        }
    }
}

/// Drives a connection to its end; if it must close, only until its requests in progress are
/// finished.
async fn until_end<C, E>(
    connection: C,
    shut_down: impl FnOnce(Pin<&mut C>),
    slot: &Slot,
    stop: &CancellationToken,
) where
    C: Future<Output = Result<(), E>>,
    E: Display,
{
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        () = slot.must_close() => None,
        ended = &mut connection => Some(ended),
    };
    let ended = if let Some(ended) = ended {
        ended
    } else {
        shut_down(connection.as_mut());
        let Ok(ended) = timeout(DRAIN_TIMEOUT, connection).await else {
            return;
        };
        ended
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Certificates that the client presented.
fn chain_of<S>(stream: &TlsStream<S>) -> Chain {
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    shown.iter().map(|it| it.clone().into_owned()).collect()
}

#[cfg(test)]
mod tests;
