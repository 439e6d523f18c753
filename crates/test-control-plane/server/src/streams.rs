//! WebSocket connections with the channels of `exec`, `attach` and `port-forward`.

mod forward;
mod process;
mod spdy;
mod tunnel;

use std::future::Future;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderValue, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::incoming::Incoming;
use crate::reply::{self, Reply};
use crate::state::Streams;

pub(crate) use forward::forward;
pub(crate) use process::{Channels, converse};
pub(crate) use tunnel::tunnel;

/// The suffix of the key in a handshake, as in RFC 6455.
const HANDSHAKE_GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Length of a read from a pod in bytes.
const READ_MAX: usize = 16 * 1024;

/// Length of the pipes to a pod in bytes.
const PIPE_MAX: usize = 64 * 1024;

/// A protocol of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Channels, of a client that names no protocol: the status is a text, sent on failure alone.
    Unnamed,
    /// Channels, and the status as an object.
    V4,
    /// Like [`V4`](Self::V4), and the client closes channels.
    V5,
    /// SPDY/3.1 in the messages, for forwarded ports.
    Tunnel,
}

impl Protocol {
    /// Returns the name in the handshake.
    fn name(self) -> &'static str {
        match self {
            Self::Unnamed => "",
            Self::V4 => "v4.channel.k8s.io",
            Self::V5 => "v5.channel.k8s.io",
            Self::Tunnel => "SPDY/3.1+portforward.k8s.io",
        }
    }
}

/// A request for a WebSocket connection.
#[derive(Debug)]
pub(crate) struct Handshake {
    upgrade: OnUpgrade,
    pub(crate) protocol: Protocol,
    accept: HeaderValue,
}

impl Handshake {
    /// Reads a handshake, and chooses the first of the client's protocols that is supported.
    ///
    /// # Errors
    ///
    /// 400 for a request without a handshake, 403 for unknown protocols.
    pub(crate) fn of(incoming: &Incoming, supported: &[Protocol]) -> ApiResult<Self> {
        let upgrade = incoming.header(UPGRADE);
        let key = incoming.header(SEC_WEBSOCKET_KEY);
        if !upgrade.eq_ignore_ascii_case("websocket") || key.is_empty() {
            let message = if upgrade.is_empty() {
                "Upgrade request required".to_owned()
            } else {
                format!("unable to upgrade to {upgrade}: only WebSocket is supported")
            };
            return Err(ApiError::bad_request(message));
        }
        let Some(on_upgrade) = incoming.upgrade.clone() else {
            return Err(ApiError::bad_request("Upgrade request required"));
        };
        let offered = incoming.header(SEC_WEBSOCKET_PROTOCOL);
        let mut offered = offered.split(',').map(str::trim);
        let protocol = offered.find_map(|offered| {
            let mut supported = supported.iter();
            supported.find(|protocol| protocol.name() == offered)
        });
        let Some(protocol) = protocol else {
            let message = "none of the requested WebSocket protocols is supported";
            return Err(ApiError::new(403, "Forbidden", message));
        };
        let hash = digest(
            &SHA1_FOR_LEGACY_USE_ONLY,
            format!("{key}{HANDSHAKE_GUID}").as_bytes(),
        );
        let accept = HeaderValue::from_str(&STANDARD.encode(hash));
        Ok(Self {
            upgrade: on_upgrade,
            protocol: *protocol,
            accept: accept.map_err(|_| ApiError::bad_request("Upgrade request required"))?,
        })
    }

    /// Accepts the connection, and serves it until it or the server ends.
    pub(crate) fn accept<F>(
        self,
        streams: &Streams,
        serve: impl FnOnce(Socket) -> F + Send + 'static,
    ) -> Reply
    where
        F: Future<Output = ()> + Send,
    {
        let mut reply = reply::text(StatusCode::SWITCHING_PROTOCOLS, Bytes::new());
        let headers = reply.headers_mut();
        headers.clear();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.accept);
        if self.protocol != Protocol::Unnamed {
            let protocol = HeaderValue::from_static(self.protocol.name());
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        let upgrade = self.upgrade;
        let stopping = streams.reads.stopping.clone();
        let broken = streams.faults.outage().connect().unwrap_or_default();
        streams.spawn(async move {
            let served = async {
                match upgrade.await {
                    Ok(upgraded) => serve(Socket::new(upgraded).await).await,
                    Err(err) => tracing::debug!(%err, "a connection was not upgraded"),
                }
            };
            tokio::select! {
                biased;
                () = stopping.cancelled() => {}
                () = broken.cancelled() => {}
                () = served => {}
            }
        });
        reply
    }
}

/// A connection of channels: each message begins with the number of its channel.
pub(crate) struct Socket(WebSocketStream<TokioIo<Upgraded>>);

/// A message on a channel.
struct Piece {
    channel: u8,
    data: Bytes,
}

impl Socket {
    async fn new(upgraded: Upgraded) -> Self {
        let io = TokioIo::new(upgraded);
        Self(WebSocketStream::from_raw_socket(io, Role::Server, None).await)
    }

    /// Sends data on a channel. Returns false if the client has gone.
    async fn send(&mut self, channel: u8, data: &[u8]) -> bool {
        let mut message = Vec::with_capacity(data.len() + 1);
        message.push(channel);
        message.extend_from_slice(data);
        self.send_whole(message).await
    }

    /// Sends data without a channel. Returns false if the client has gone.
    async fn send_whole(&mut self, data: Vec<u8>) -> bool {
        self.0.send(Message::binary(data)).await.is_ok()
    }

    /// Returns the next message on a channel; `None` once the client has closed the connection.
    async fn receive(&mut self) -> Option<Piece> {
        let mut data = self.receive_whole().await?;
        let channel = data.split_to(1)[0];
        Some(Piece { channel, data })
    }

    /// Returns the next message, which is not empty; `None` once the client has closed the
    /// connection.
    async fn receive_whole(&mut self) -> Option<Bytes> {
        loop {
            let data = match self.0.next().await? {
                Ok(Message::Binary(data)) => data,
                Ok(Message::Text(text)) => Bytes::from(text.as_str().to_owned()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => continue,
            };
            if !data.is_empty() {
                return Some(data);
            }
        }
    }

    /// Closes the connection, and waits for the client to do the same.
    async fn close(mut self) {
        // kubectl takes a close without a code for an error.
        let frame = CloseFrame {
            code: CloseCode::Normal,
            reason: Utf8Bytes::default(),
        };
        if self.0.close(Some(frame)).await.is_ok() {
            while self.receive().await.is_some() {}
        }
    }
}
