//! One exchange over a TLS connection.

use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{Either, select};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{dial, trust};

/// The end of a connection without a response.
const EOF: &str = "EOF";

/// Sends a request over a new TLS connection to a server of this name, and returns the response with
/// its body.
///
/// # Errors
///
/// The server can't be trusted, or the connection breaks. The text is Go's.
pub(super) async fn exchange(
    socket: TcpStream,
    server: &str,
    bundle: &[u8],
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, String> {
    let connector = TlsConnector::from(Arc::new(trust::tls_config(bundle)?));
    let name = ServerName::try_from(server.to_owned()).map_err(|error| error.to_string())?;
    let stream = connector.connect(name, socket).await;
    let stream = stream.map_err(|error| of_io(&error, server))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| of_http(&error))?;
    let exchange = pin!(async {
        let response = sender.send_request(request).await;
        let (parts, body) = response.map_err(|error| of_http(&error))?.into_parts();
        let body = body.collect().await.map_err(|error| {
            let why = match of_http(&error) {
                eof if eof == EOF => "unexpected EOF".to_owned(),
                other => other,
            };
            format!(
                "unexpected error when reading response body. Please retry. Original error: {why}"
            )
        })?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    });
    match select(exchange, pin!(connection)).await {
        Either::Left((result, _)) => result,
        Either::Right((_, exchange)) => exchange.await,
    }
}

/// Returns Go's text for a failed handshake.
fn of_io(error: &io::Error, server: &str) -> String {
    let inner = error.get_ref().and_then(|it| it.downcast_ref());
    match inner {
        Some(error) => trust::go_text(error, server),
        None => dial::go_text(error),
    }
}

/// Returns Go's text for a broken connection.
fn of_http(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return EOF.to_owned();
    }
    let source = std::error::Error::source(error);
    match source.and_then(|it| it.downcast_ref::<io::Error>()) {
        // A connection without TLS' own end may be incomplete.
        Some(error) if error.kind() == ErrorKind::UnexpectedEof => EOF.to_owned(),
        Some(error) => dial::go_text(error),
        None => error.to_string(),
    }
}
